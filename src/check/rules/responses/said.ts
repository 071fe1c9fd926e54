import type { Exchange } from "../exchange.ts";
import { isStream } from "../judge.ts";
import { bodyView, type Json, streamView } from "../view.ts";
import { callsOf, type ResponseView, streamedResponse, textOf, wholeResponse } from "./response-view.ts";
import { deltasOf, storyOf } from "./stream-story.ts";

/** What an answer of the Responses API says, as a client reads it: the text of a stream by its deltas. */
export interface ResponseSaid {
  readonly text: string;
  readonly calls: string;
  readonly finish: string;
}

/** undefined: it does not end with a response. */
export function saidInResponse(exchange: Exchange): ResponseSaid | undefined {
  if (!isStream(exchange)) {
    const view = wholeResponse(bodyView(exchange));
    return view && { text: textOf(view), ...told(view) };
  }
  const stream = streamView(exchange);
  const view = streamedResponse(stream);
  const parts = storyOf(stream).items.flatMap((item) => item.parts);
  const text = parts.filter(({ deltas }) => deltas[0]?.type === "response.output_text.delta").map(deltasOf);
  return view && { text: text.join(""), ...told(view) };
}

function told(view: ResponseView): Pick<ResponseSaid, "calls" | "finish"> {
  const calls = callsOf(view).map(({ namespace, name, arguments: json, input }: Json) => [
    namespace,
    name,
    json ?? input,
  ]);
  return { calls: JSON.stringify(calls), finish: String(view.response.status) };
}
