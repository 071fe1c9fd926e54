import type { Exchange } from "./exchange.ts";
import type { BodyView, StreamView } from "./view.ts";

/**
 * `error`: the answer violates the specification or the requested profile, or breaks an official client. `warning`: some clients are known to
 * break. `note`: the answer differs from the vendor's, and no client is known to break.
 */
export type Severity = "error" | "warning" | "note";

/** What a user notices. Reports are grouped by it. */
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
  | "it differs from Ollama"
  | "it is not the form that was demanded";

export interface RuleFacts {
  /** `area/name`. It never changes: users name rules in their CI. */
  readonly id: string;
  readonly severity: Severity;
  readonly concern: Concern;
  /** What must hold, in one sentence. */
  readonly says: string;
  /** The source of the rule: a section of the specification, a number of recordings, an issue. */
  readonly source: string;
  /** Clients that are known to break. */
  readonly breaks: readonly string[];
  /** Ids of rules whose violation also violates this one: both are one mistake of the server. */
  readonly follows?: readonly string[];
}

/** A violation of a rule: a place in the response's body, and what is wrong there. */
export interface Violation {
  readonly start: number;
  readonly end: number;
  /** What was found, in a few words. Reports show it next to the rule's `says`. */
  readonly found: string;
  /** The member of a schema that is missing or has a wrong value. A rule about that member reports the same mistake. */
  readonly member?: string;
}

export interface Finding extends Violation {
  readonly rule: string;
}

/** Judges one streamed answer (status 200, Server-Sent Events). */
export interface StreamRule extends RuleFacts {
  readonly judges: "stream";
  readonly endpoints: readonly Exchange["endpoint"][];
  /** Returns whether the rule applies to this stream; otherwise it counts as "not shown". Default: always. */
  shown?(view: StreamView): boolean;
  judge(view: StreamView): Iterable<Violation>;
}

/** Judges one answer that is not streamed. */
export interface BodyRule extends RuleFacts {
  readonly judges: "body";
  shown?(view: BodyView): boolean;
  judge(view: BodyView): Iterable<Violation>;
}

export type Rule = StreamRule | BodyRule;

/** The maximum of violations reported for one rule and exchange: a stream of a thousand chunks repeats its mistakes. */
export const maxViolations = 20;
