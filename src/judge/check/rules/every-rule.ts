import { readTexts } from "./read-texts.ts";
import type { Rule } from "./rule.ts";
import { chatTexts } from "./texts/chat.ts";
import { geminiTexts } from "./texts/gemini.ts";
import { messagesTexts } from "./texts/messages.ts";
import { othersTexts } from "./texts/others.ts";
import { responsesTexts } from "./texts/responses.ts";

/** All rules: about one exchange, by API; about a requested profile; about several exchanges. */
export const everyRule: readonly Rule[] = [chatTexts, messagesTexts, responsesTexts, geminiTexts, othersTexts].flatMap(
  readTexts,
);

const byId: ReadonlyMap<string, Rule> = new Map(everyRule.map((rule) => [rule.id, rule]));

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
export function ruleNamed(id: string): Rule {
  const rule = byId.get(id);
  if (!rule) throw new Error(`there is no rule ${id}`);
  return rule;
}

/** True for a rule about the requested profile, which applies only on request. */
export function isOfProfile({ id }: Rule): boolean {
  return id.startsWith("profile/");
}
