import { streamView, bodyView } from "../view.ts";
import type { Exchange } from "../exchange.ts";
import { isStream } from "../judge.ts";
import { callsIn, isWhole, streamedMessage, textOf, wholeMessage } from "./message-view.ts";

/** What a message says, to be compared with what another one says; undefined where there is none. */
export function saidInMessage(exchange: Exchange): { text: string; calls: string; finish: string } | undefined {
  const view = isStream(exchange) ? streamedMessage(streamView(exchange)) : wholeMessage(bodyView(exchange));
  if (!view) return undefined;
  // The input of a call that was cut has another form in each.
  const calls = callsIn(view).map(({ value }) => (isWhole(view) ? [value.name, value.input] : [value.name]));
  return { text: textOf(view), calls: JSON.stringify(calls), finish: String(view.message.stop_reason) };
}
