import { allRules } from "./all-rules.ts";
import { type GroupRule, groupRules } from "./group/group-rules.ts";
import type { Rule } from "./rule.ts";

/** Rules about one exchange and about several, by area. */
export const everyRule: readonly (Rule | GroupRule)[] = [...allRules, ...groupRules];

const byId: ReadonlyMap<string, Rule | GroupRule> = new Map(everyRule.map((rule) => [rule.id, rule]));

/** Throws for an id that no rule has, which only a defect of a rule or probe can bring about. */
export function ruleNamed(id: string): Rule | GroupRule {
  const rule = byId.get(id);
  if (!rule) throw new Error(`there is no rule ${id}`);
  return rule;
}
