/**
 * The rules of `truewire check` by themselves (`truewire/rules`): pure functions that need nothing of Node and run in a browser as they
 * are. docs/checking.md shows how.
 */
export { judge } from "./judge/check/rules/judge.ts";
export type { Verdict } from "./judge/check/rules/judge.ts";
export { judgeCapture } from "./judge/check/check-capture.ts";
export type { Judgement } from "./judge/check/report/report.ts";
export type { Exchange } from "./judge/check/rules/exchange.ts";
export { everyRule, ruleNamed } from "./judge/check/rules/every-rule.ts";
export type { Concern, Finding, Violation, Rule, Severity } from "./judge/check/rules/rule.ts";
export { formOf } from "./judge/check/rules/form.ts";
export type { Form } from "./judge/check/rules/form.ts";
export type { ProfileName } from "./judge/check/rules/profile/profile-rule.ts";
