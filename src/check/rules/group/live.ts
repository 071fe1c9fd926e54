import type { Exchange } from "../exchange.ts";
import type { Finding } from "../rule.ts";
import { streamView } from "../view.ts";
import type { GroupRule } from "./group-rule.ts";

/** Rules that only a running server can show. They judge what ../../probe/live.ts measures. */
export const liveRules: readonly GroupRule[] = [
  {
    id: "live/streams-apart",
    severity: "error",
    concern: "choices mix",
    says: "Concurrent streams do not mix: each has its own id and its own answer.",
    source: "vllm-mlx #649, langchain-oracle #256 (parsers that share their state)",
    breaks: ["every server application"],
    judges: "group",
  },
  {
    id: "live/side-by-side",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "A second stream begins before the first has ended.",
    source: "llama-cpp-python #897",
    breaks: ["every application with more than one user"],
    judges: "group",
  },
  {
    id: "live/disconnect",
    severity: "warning",
    concern: "requests are misunderstood",
    says: "When clients disconnect, their generations end, so that the next request need not wait.",
    source: "LiteLLM #30244, #31499; new-api #4186",
    breaks: ["users (a stop button that stops nothing), and whoever pays for the tokens"],
    judges: "group",
  },
];

/** What a live probe found, and which of its rules it could show. */
export interface LiveVerdict {
  readonly findings: readonly Finding[];
  readonly shown: readonly string[];
  /** Why a rule could not be shown. */
  readonly reason?: string;
}

/** `streams`: those that ran side by side, and the word that each was asked for. */
export function judgeStreamsApart(
  streams: readonly { readonly word: string; readonly exchange: Exchange }[],
): LiveVerdict {
  const findings: Finding[] = [];
  const ids = new Set<unknown>();
  for (const { word, exchange } of streams) {
    const view = streamView(exchange);
    const id = view.chunks[0]?.value.id;
    const text = [...view.choices.values()]
      .flat()
      .map(({ delta }) => (typeof delta.content === "string" ? delta.content : ""))
      .join("");
    const foreign = streams.find((other) => other.word !== word && text.includes(other.word));
    if (ids.has(id)) findings.push(offence("live/streams-apart", `two streams with the id ${String(id)}`));
    else if (foreign !== undefined)
      findings.push(offence("live/streams-apart", `the word "${foreign.word}" in the answer to another request`));
    ids.add(id);
  }
  if (streams.length < 2) return { findings: [], shown: [], reason: "fewer than two streams were answered" };
  return { findings, shown: ["live/streams-apart"] };
}

/** A shorter answer may end before a busy machine can open a second one. In milliseconds. */
const shortestOverlap = 2000;

/** `first`: a long stream at the moment when a second one began: whether it had ended, and its duration so far. */
export function judgeSideBySide(first: { readonly ended: boolean; readonly milliseconds: number }): LiveVerdict {
  const shown = ["live/side-by-side"];
  // The first ended before the second began: either the server answers one at a time, or the answer was too short to tell.
  if (!first.ended) return { findings: [], shown };
  if (first.milliseconds < shortestOverlap)
    return { findings: [], shown: [], reason: "the answers are too short to overlap" };
  return { findings: [offence("live/side-by-side", "the second stream began when the first had ended")], shown };
}

export interface LeavingTimes {
  /** A short answer, alone. In milliseconds, as the others. */
  readonly alone: number;
  /** A long answer, alone. */
  readonly long: number;
  /** The short answer again, after `clients` had begun long ones and left. */
  readonly after: number;
  readonly clients: number;
}

/** If the abandoned answers were still being generated, the short one would wait for much of them. */
export function judgeDisconnect({ alone, long, after, clients }: LeavingTimes): LiveVerdict {
  if (long < 10 * alone || long < 3000)
    return { findings: [], shown: [], reason: "the server answers too fast to tell" };
  const slow = after > alone * 4 + 500;
  const found = `${seconds(after)} for a short answer after ${clients} clients had disconnected, ${seconds(alone)} before`;
  return { findings: slow ? [offence("live/disconnect", found)] : [], shown: ["live/disconnect"] };
}

function offence(rule: string, found: string): Finding {
  return { rule, start: 0, end: 0, found };
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
