import type { Finding } from "../rule.ts";

/** The result of rules about several exchanges. */
export interface GroupVerdict {
  readonly findings: readonly Finding[];
  /** Rules that the exchanges could show, broken or not. */
  readonly shown: readonly string[];
  /** Why a rule could not be shown: a sentence without its full stop. */
  readonly reason?: string;
}

/** Returns the result if no rule could be shown. */
export function notShown(reason: string): GroupVerdict {
  return { findings: [], shown: [], reason };
}

/** Returns the result of one rule. `found`: what is wrong, if anything. */
export function verdictOn(rule: string, found: string | undefined): GroupVerdict {
  return { findings: found === undefined ? [] : [{ rule, start: 0, end: 0, found }], shown: [rule] };
}
