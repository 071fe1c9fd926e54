import type { Finding } from "../../../src/judge/check/rules/rule.ts";

/** A change that makes something legal illegal: a stream, a body, a group of exchanges, or a measurement. */
export interface IllegalChange {
  /** The rule that must notice. */
  readonly rule: string;
  readonly name: string;
  /** What is found after the change of one that `seed` decides; undefined where the change cannot be made in it. */
  make(seed: number): readonly Finding[] | undefined;
}

/** A change that leaves it legal: nothing may be found after it, not even a note. */
export interface LegalChange {
  readonly name: string;
  make(seed: number): readonly Finding[] | undefined;
}
