import type { Exchange } from "../exchange.ts";
import { isStream } from "../exchange.ts";
import { bodyView, type Json, streamView } from "../view.ts";
import { clientCalls, responseText, type ResponseView, streamedResponse, wholeResponse } from "./response-view.ts";
import { deltasOf, streamState } from "./stream-state.ts";

/** Returns the response that an exchange ends with, streamed or whole, or `undefined`. */
export function lastResponse(exchange: Exchange): Json | undefined {
  return (isStream(exchange) ? streamedResponse(streamView(exchange)) : wholeResponse(bodyView(exchange)))?.response;
}

/** The content of an answer of the Responses API as a client reads it: the text of a stream is that of its deltas. */
export interface ResponseContent {
  readonly text: string;
  readonly calls: string;
  readonly finish: string;
}

/** Returns `undefined` if the exchange does not end with a response. */
export function responseContent(exchange: Exchange): ResponseContent | undefined {
  if (!isStream(exchange)) {
    const view = wholeResponse(bodyView(exchange));
    return view && { text: responseText(view), ...callsAndFinish(view) };
  }
  const stream = streamView(exchange);
  const view = streamedResponse(stream);
  const parts = streamState(stream).items.flatMap((item) => item.parts);
  const text = parts.filter(({ deltas }) => deltas[0]?.type === "response.output_text.delta").map(deltasOf);
  return view && { text: text.join(""), ...callsAndFinish(view) };
}

function callsAndFinish(view: ResponseView): Pick<ResponseContent, "calls" | "finish"> {
  const calls = clientCalls(view).map(({ namespace, name, arguments: json, input }: Json) => [
    namespace,
    name,
    json ?? input,
  ]);
  return { calls: JSON.stringify(calls), finish: String(view.response.status) };
}
