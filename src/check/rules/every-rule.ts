import { allRules } from "./all-rules.ts";
import type { GroupRule } from "./group/group-rule.ts";
import { groupRules } from "./group/group-rules.ts";
import type { ProfileRule } from "./profile/profile-rule.ts";
import { profileRules } from "./profile/profile-rules.ts";
import type { Rule } from "./rule.ts";

export type EveryRule = Rule | ProfileRule | GroupRule;

/** Rules about one exchange, about a form that was demanded, and about several exchanges, by area. */
export const everyRule: readonly EveryRule[] = [...allRules, ...profileRules, ...groupRules];

const byId: ReadonlyMap<string, EveryRule> = new Map(everyRule.map((rule) => [rule.id, rule]));

/** Throws for an id that no rule has, which only a defect of a rule or probe can bring about. */
export function ruleNamed(id: string): EveryRule {
  const rule = byId.get(id);
  if (!rule) throw new Error(`there is no rule ${id}`);
  return rule;
}
