import { bodyRules } from "./body/body-rules.ts";
import { expectationRules } from "./group/expectation.ts";
import type { GroupRule } from "./group/group-rule.ts";
import { liveRules } from "./group/live.ts";
import { sameRules } from "./group/same.ts";
import { storedRules } from "./group/stored.ts";
import { messageRules } from "./messages/message-rules.ts";
import type { MessageRule } from "./messages/message-view.ts";
import type { ProfileRule } from "./profile/profile-rule.ts";
import { profileRules } from "./profile/profile-rules.ts";
import { everyResponseRule } from "./responses/response-rules.ts";
import type { ResponseRule } from "./responses/response-view.ts";
import type { Rule } from "./rule.ts";
import { streamRules } from "./stream/stream-rules.ts";

export type EveryRule = Rule | MessageRule | ResponseRule | ProfileRule | GroupRule;

/** Rules about one exchange, about a form that was demanded, and about several exchanges, by area. */
export const everyRule: readonly EveryRule[] = [
  ...streamRules,
  ...bodyRules,
  ...messageRules,
  ...everyResponseRule,
  ...profileRules,
  ...expectationRules,
  ...sameRules,
  ...storedRules,
  ...liveRules,
];

const byId: ReadonlyMap<string, EveryRule> = new Map(everyRule.map((rule) => [rule.id, rule]));

/** Throws for an unknown id: a defect of a rule or a probe. */
export function ruleNamed(id: string): EveryRule {
  const rule = byId.get(id);
  if (!rule) throw new Error(`there is no rule ${id}`);
  return rule;
}
