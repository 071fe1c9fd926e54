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
export type { EveryRule } from "./judge/check/rules/every-rule.ts";
export type { OllamaLine, OllamaRule, OllamaView } from "./judge/check/rules/ollama/ollama-rules.ts";
export type { TextRule } from "./judge/check/rules/text-rules.ts";
export type { Concern, Finding, Violation, RuleFacts, Severity } from "./judge/check/rules/rule.ts";
export { formOf } from "./judge/check/rules/form.ts";
export type { Form } from "./judge/check/rules/form.ts";
export type { ProfileName } from "./judge/check/rules/profile/profile-rule.ts";
export { judgeExpectation } from "./judge/check/rules/group/expectation.ts";
export type { Expectation } from "./judge/check/rules/group/expectation.ts";
export { judgeSame } from "./judge/check/rules/group/same.ts";
export { judgeDisconnect, judgeSideBySide, judgeStreamsApart } from "./judge/check/rules/group/live.ts";
export {
  judgeBackground,
  judgeCompacted,
  judgeContinued,
  judgeContinuedBySocket,
  judgeDeleted,
  judgeInputItems,
  judgeNotKept,
  judgeShown,
  judgeUnknownBySocket,
} from "./judge/check/rules/group/stored.ts";
export {
  judgeLaneId,
  judgeLaneLimit,
  judgeLaneQueue,
  judgeLanes,
  judgeSteer,
} from "./judge/check/rules/group/lanes.ts";
export type { LeavingTimes } from "./judge/check/rules/group/live.ts";
export type { GroupVerdict } from "./judge/check/rules/group/group-rule.ts";
