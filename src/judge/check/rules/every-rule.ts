import { bodyRules, profileRules } from "./judge.ts";
import { expectationRules } from "./group/expectation.ts";
import { diagnosisRules } from "./group/diagnosed.ts";
import type { GroupRule } from "./group/group-rule.ts";
import { laneRules } from "./group/lanes.ts";
import { liveRules } from "./group/live.ts";
import { sameRules } from "./group/same.ts";
import { storedRules } from "./group/stored.ts";
import { messageRules } from "./messages/message-rules.ts";
import type { MessageRule } from "./messages/message-view.ts";
import { type OllamaRule, ollamaRules } from "./ollama/ollama-rules.ts";
import type { ProfileRule } from "./profile/profile-rule.ts";
import { everyResponseRule } from "./responses/response-rules.ts";
import type { ResponseRule } from "./responses/response-view.ts";
import type { Rule } from "./rule.ts";
import { streamRules } from "./stream/stream-rules.ts";
import { textRules, type TextRule } from "./text-rules.ts";

export type EveryRule = Rule | TextRule | MessageRule | ResponseRule | OllamaRule | ProfileRule | GroupRule;

/** All rules by area: about one exchange, about a requested profile, and about several exchanges. */
export const everyRule: readonly EveryRule[] = [
  ...streamRules,
  ...bodyRules,
  ...textRules,
  ...messageRules,
  ...everyResponseRule,
  ...ollamaRules,
  ...profileRules,
  ...expectationRules,
  ...sameRules,
  ...storedRules,
  ...laneRules,
  ...diagnosisRules,
  ...liveRules,
];

const byId: ReadonlyMap<string, EveryRule> = new Map(everyRule.map((rule) => [rule.id, rule]));

/**
 * Returns the rule with this id. Throws `Error` for an unknown id, which is a defect of a rule or a probe.
 *
 * @example
 * import { ruleNamed } from "truewire/rules";
 *
 * const { severity, says } = ruleNamed("finish/once");
 * console.log(severity, "|", says);
 * // → error | A choice has one finish reason.
 */
export function ruleNamed(id: string): EveryRule {
  const rule = byId.get(id);
  if (!rule) throw new Error(`there is no rule ${id}`);
  return rule;
}
