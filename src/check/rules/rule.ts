import type { Exchange } from "./exchange.ts";
import type { BodyView, StreamView } from "./view.ts";

/**
 * error: the answer violates the specification or the demanded profile, or breaks an official client. warning: some clients are known to
 * break. note: the answer differs from the vendor's, and no client is known to break.
 */
export type Severity = "error" | "warning" | "note";

/** What a user would notice; reports are grouped by it. */
export type Concern =
  | "the stream cannot be read"
  | "text is lost or wrong"
  | "tool calls break"
  | "the answer seems to end wrongly"
  | "errors look like answers"
  | "token counts are wrong"
  | "log probabilities are wrong"
  | "choices mix"
  | "requests are misunderstood"
  | "it differs from OpenAI"
  | "it differs from Anthropic"
  | "it is not the form that was demanded";

export interface RuleFacts {
  /** `area/name`, stable: users put it into their CI. */
  readonly id: string;
  readonly severity: Severity;
  readonly concern: Concern;
  /** What must hold, in one sentence. */
  readonly says: string;
  /** Where the rule comes from: section of the specification, recordings counted, issue. */
  readonly source: string;
  /** Clients known to break; empty when none is known. */
  readonly breaks: readonly string[];
}

/** Evidence that a rule is broken: a place in the response's body, and what is wrong there. */
export interface Offence {
  readonly start: number;
  readonly end: number;
  /** What was found, in a few words; the rule's `says` stands beside it. */
  readonly found: string;
}

export interface Finding extends Offence {
  readonly rule: string;
}

/** Judges one streamed answer (status 200, Server-Sent Events). */
export interface StreamRule extends RuleFacts {
  readonly judges: "stream";
  readonly endpoints: readonly Exchange["endpoint"][];
  /** Whether this stream can show the rule at all; otherwise it counts as "not shown". Default: always. */
  shown?(view: StreamView): boolean;
  judge(view: StreamView): Iterable<Offence>;
}

/** Judges one answer that is no stream. */
export interface BodyRule extends RuleFacts {
  readonly judges: "body";
  shown?(view: BodyView): boolean;
  judge(view: BodyView): Iterable<Offence>;
}

export type Rule = StreamRule | BodyRule;

/** The most offences reported for one rule and exchange: a stream of a thousand chunks repeats its mistakes. */
export const offencesShown = 20;
