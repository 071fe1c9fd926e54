import { isObject } from "../../../../wire/core/json.ts";
import type { Exchange } from "../exchange.ts";
import type { Finding } from "../rule.ts";
import { streamView } from "../view.ts";
import { summaryOf } from "./same.ts";
import { type GroupVerdict, notShown, verdictOn } from "./group-rule.ts";

const apart = "live/streams-apart";

/** `streams`: the concurrent streams, of any API, and the word that each request asks for. */
export function judgeStreamsApart(
  streams: readonly { readonly word: string; readonly exchange: Exchange }[],
): GroupVerdict {
  if (streams.length < 2) return notShown("fewer than two streams were answered");
  const findings: Finding[] = [];
  const ids = new Set<unknown>();
  for (const { word, exchange } of streams) {
    const { id, text } = streamed(exchange);
    const foreign = streams.find((other) => other.word !== word && text.includes(other.word));
    if (ids.has(id)) findings.push(finding(`two streams with the id ${String(id)}`));
    else if (foreign !== undefined)
      findings.push(finding(`the word "${foreign.word}" in the answer to another request`));
    ids.add(id);
  }
  return { findings, shown: [apart] };
}

/** The id of a streamed answer, and its text. */
function streamed(exchange: Exchange): { readonly id: unknown; readonly text: string } {
  const view = streamView(exchange);
  const first = view.chunks.map(({ value }) => value).find((value) => value.type !== "ping") ?? {};
  const whole = [first, first.response, first.message].filter(isObject).find(({ id }) => id !== undefined);
  return { id: whole?.id, text: summaryOf(exchange)?.text ?? "" };
}

function finding(found: string): Finding {
  return { rule: apart, start: 0, end: 0, found };
}

/** In milliseconds. A shorter answer may end before a busy machine can open a second one. */
const minOverlap = 2000;

/** `first`: the state of a long stream when the second one began: whether it had ended, and its duration until then. */
export function judgeSideBySide(first: { readonly ended: boolean; readonly milliseconds: number }): GroupVerdict {
  // If the first has ended, either the server answers one request at a time, or the answer was too short.
  if (first.ended && first.milliseconds < minOverlap) return notShown("the answers are too short to overlap");
  const found = first.ended ? "the second stream began when the first had ended" : undefined;
  return verdictOn("live/side-by-side", found);
}

export interface LeavingTimes {
  /** The duration of a short answer without other requests, in milliseconds. */
  readonly alone: number;
  /** The duration of a long answer without other requests, in milliseconds. */
  readonly long: number;
  /** The duration of the short answer after `clients` have started long ones and disconnected, in milliseconds. */
  readonly after: number;
  readonly clients: number;
}

/** If the abandoned answers were still generated, the short one would wait for them. */
export function judgeDisconnect({ alone, long, after, clients }: LeavingTimes): GroupVerdict {
  if (long < 10 * alone || long < 3000) return notShown("the server answers too fast to measure it");
  const found = `${seconds(after)} for a short answer after ${clients} clients had disconnected, ${seconds(alone)} before`;
  return verdictOn("live/disconnect", after > alone * 4 + 500 ? found : undefined);
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
