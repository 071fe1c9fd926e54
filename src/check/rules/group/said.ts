import { isObject } from "../../../core/json.ts";
import { apiOf, type Exchange } from "../exchange.ts";
import { isStream } from "../judge.ts";
import { saidInMessage } from "../messages/said.ts";
import { saidInResponse } from "../responses/response-content.ts";
import { callsOf } from "../stream/calls.ts";
import { bodyView, type Json, streamView } from "../view.ts";

/** What an answer says, streamed or not. */
export interface Said {
  readonly text: string;
  readonly calls: string;
  readonly finish: string;
}

/** What an answer of any API says, streamed or whole; undefined: it is none. */
export function saidIn(exchange: Exchange): Said | undefined {
  if (exchange.response.status !== 200) return undefined;
  if (apiOf[exchange.endpoint] === "responses") return saidInResponse(exchange);
  if (exchange.endpoint === "messages") return saidInMessage(exchange);
  return isStream(exchange) ? saidInStream(exchange) : saidAtOnce(exchange);
}

function saidInStream(exchange: Exchange): Said {
  const view = streamView(exchange);
  const track = view.choices.get(0) ?? [];
  return {
    text: track.map(({ delta }) => (typeof delta.content === "string" ? delta.content : "")).join(""),
    calls: JSON.stringify(
      callsOf(view)
        .filter((call) => call.choice === 0)
        .map((call) => [call.name, call.arguments]),
    ),
    finish: String(track.find(({ choice }) => typeof choice.finish_reason === "string")?.choice.finish_reason),
  };
}

function saidAtOnce(exchange: Exchange): Said | undefined {
  const { value } = bodyView(exchange);
  const choice = isObject(value) && Array.isArray(value.choices) ? (value.choices[0] as Json | undefined) : undefined;
  if (!isObject(choice) || !isObject(choice.message)) return undefined;
  const { content, tool_calls: calls } = choice.message;
  const list = Array.isArray(calls) ? calls.filter(isObject) : [];
  return {
    text: typeof content === "string" ? content : "",
    calls: JSON.stringify(
      list.map((call) => (isObject(call.function) ? [call.function.name, call.function.arguments] : [])),
    ),
    finish: String(choice.finish_reason),
  };
}
