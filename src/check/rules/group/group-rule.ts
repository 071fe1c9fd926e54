import type { Finding, RuleFacts } from "../rule.ts";

/** A rule about more than one exchange, or about what a probe expects of its answer. */
export type GroupRule = RuleFacts & { readonly judges: "group" };

/** What several exchanges, or what was measured of them, show together. */
export interface GroupVerdict {
  readonly findings: readonly Finding[];
  /** Rules that they could show. */
  readonly shown: readonly string[];
  /** Why a rule could not be shown, in one sentence without its full stop. */
  readonly reason?: string;
}

/** Nothing could be shown. */
export function notShown(reason: string): GroupVerdict {
  return { findings: [], shown: [], reason };
}

/** The verdict on one rule; `found`: what is wrong. */
export function verdictOn(rule: string, found: string | undefined): GroupVerdict {
  return { findings: found === undefined ? [] : [{ rule, start: 0, end: 0, found }], shown: [rule] };
}
