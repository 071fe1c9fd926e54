/**
 * The rules of `truewire check` by themselves (`truewire/rules`): pure functions that need nothing of Node and run in a browser as they
 * are. docs/checking.md shows how.
 */
export { judge } from "./check/rules/judge.ts";
export type { Verdict } from "./check/rules/judge.ts";
export { judgeCapture } from "./check/check-capture.ts";
export type { Judgement } from "./check/report/report.ts";
export type { Exchange } from "./check/rules/exchange.ts";
export { everyRule, ruleNamed } from "./check/rules/every-rule.ts";
export type { EveryRule } from "./check/rules/every-rule.ts";
export type { OllamaLine, OllamaRule, OllamaView } from "./check/rules/ollama/ollama-rules.ts";
export type { TextRule } from "./check/rules/text-rules.ts";
export type { Concern, Finding, Violation, RuleFacts, Severity } from "./check/rules/rule.ts";
export { formOf } from "./check/rules/form.ts";
export type { Form } from "./check/rules/form.ts";
export type { ProfileName } from "./check/rules/profile/profile-rule.ts";
export { judgeExpectation } from "./check/rules/group/expectation.ts";
export type { Expectation } from "./check/rules/group/expectation.ts";
export { judgeSame } from "./check/rules/group/same.ts";
export { judgeDisconnect, judgeSideBySide, judgeStreamsApart } from "./check/rules/group/live.ts";
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
} from "./check/rules/group/stored.ts";
export { judgeLaneId, judgeLaneLimit, judgeLaneQueue, judgeLanes, judgeSteer } from "./check/rules/group/lanes.ts";
export type { LeavingTimes } from "./check/rules/group/live.ts";
export type { GroupVerdict } from "./check/rules/group/group-rule.ts";
