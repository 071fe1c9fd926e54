import type { Exchange } from "./exchange.ts";

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
  | "it differs from Google"
  | "it is not the form that was demanded";

/** What a rule says. The tables of ./texts/ have those of all rules. */
export interface Rule {
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

/** A difference between a value and its schema. */
export interface SchemaViolation {
  /** The path in the JSON, as a client writes it: `choices[0].delta.content`. */
  readonly path: string;
  /** What is there, and what must be. */
  readonly found: string;
  /** The names and positions of the path. */
  readonly keys: readonly PropertyKey[];
  /** The last name in the path, or "" for the whole value. */
  readonly member: string;
}

export interface Finding extends Violation {
  readonly rule: string;
}

/** What a rule's function returns for an answer that cannot show the rule, which then counts as "not shown". */
export const notShown = Symbol("not shown");

/** Judges an answer: yields what is wrong. `profile`: the requested profile, for the rules about it. */
export type RuleFunction<View, Profile = void> = (
  view: View,
  profile: Profile,
) => Generator<Violation, typeof notShown | void>;

/** The functions of rules, by id. */
export type Rules<View, Profile = void> = Readonly<Record<string, RuleFunction<View, Profile>>>;

/** Returns the functions for rules that only an answer with `shows` can show. */
export function whenAll<View>(shows: (view: View) => boolean, rules: Rules<View>): Rules<View> {
  return Object.fromEntries(
    Object.entries(rules).map(([id, judge]) => [
      id,
      function* (view: View, profile: void) {
        return shows(view) ? yield* judge(view, profile) : notShown;
      },
    ]),
  );
}

/** Returns the functions for rules about answers of these endpoints. */
export function on<View extends { readonly exchange: Exchange }>(
  endpoints: readonly Exchange["endpoint"][],
  rules: Rules<View>,
): Rules<View> {
  return whenAll(({ exchange }) => endpoints.includes(exchange.endpoint), rules);
}

/** The maximum of violations reported for one rule and exchange: a stream of a thousand chunks repeats its mistakes. */
export const maxViolations = 20;
