import { profileNamed } from "../../../wire/apis/profile.ts";
import { answerRules } from "./body/answer.ts";
import { callRules } from "./body/call.ts";
import { failureRules, jsonHeaderRules } from "./body/failure.ts";
import { modelRules } from "./body/models.ts";
import { bodyRequestRules } from "./body/request-rules.ts";
import { type Exchange, isStream, vendorOf } from "./exchange.ts";
import { isBeforeExact } from "./form.ts";
import { messageBodyRules } from "./messages/body-rules.ts";
import { messageRules } from "./messages/message-rules.ts";
import { streamedMessage, wholeMessage } from "./messages/message-view.ts";
import { messageProfileRules } from "./messages/profile-rules.ts";
import { ollamaRules, ollamaView } from "./ollama/ollama-rules.ts";
import { chunkDeltaRules } from "./profile/delta-rules.ts";
import { layoutRule } from "./profile/layout-rule.ts";
import { memberRules } from "./profile/member-rules.ts";
import type { ProfileJudge, ProfileName, ProfileRule } from "./profile/profile-rule.ts";
import { valueRules } from "./profile/value-rules.ts";
import { everyResponseRule } from "./responses/response-rules.ts";
import { responseProfileRules } from "./responses/profile-rules.ts";
import { streamedResponse, wholeResponse } from "./responses/response-view.ts";
import { responseBodyRules, socketErrorRules, tokenCountRules } from "./responses/body-rules.ts";
import { type BodyRule, type Finding, type Violation, maxViolations, type RuleFacts } from "./rule.ts";
import { specBodyRules } from "./spec/spec-rules.ts";
import { streamRules } from "./stream/stream-rules.ts";
import { textRules } from "./text-rules.ts";
import { type BodyView, bodyView, type StreamView, streamView } from "./view.ts";

/** The rules about answers that are not streamed. */
export const bodyRules: readonly BodyRule[] = [
  ...answerRules,
  ...callRules,
  ...bodyRequestRules,
  ...failureRules,
  ...modelRules,
  ...jsonHeaderRules,
  ...specBodyRules,
  ...messageBodyRules,
  ...tokenCountRules,
  ...responseBodyRules,
  ...socketErrorRules,
];

/** The rules that apply only to the requested profile. */
export const profileRules: readonly ProfileRule[] = [
  layoutRule,
  ...memberRules,
  ...chunkDeltaRules,
  ...valueRules,
  ...messageProfileRules,
  ...responseProfileRules,
];

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Ids of the rules that this exchange can show, whether it follows or breaks them. */
  readonly shown: readonly string[];
}

/**
 * Judges one exchange by every rule that applies to it. `requestedProfile`: also by the rules of this profile (`openai` is the older name
 * of `exact`). Pure: the same exchange always has the same verdict.
 *
 * @example
 * import { judge, ruleNamed } from "truewire/rules";
 *
 * const choices = [{ index: 0, delta: { content: "Hi" }, finish_reason: "stop" }];
 * const chunk = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m", choices };
 * const { findings } = judge({
 *   endpoint: "chat",
 *   request: { method: "POST", path: "/v1/chat/completions", body: { model: "m", messages: [], stream: true } },
 *   response: { status: 200, headers: null, body: `data: ${JSON.stringify(chunk)}\n\n`, complete: true },
 * });
 * for (const { rule, found } of findings) if (ruleNamed(rule).severity === "error") console.log(rule, "|", found);
 * // → end/done | no [DONE]
 * // → stream/role-first | a first delta without role
 */
export function judge(exchange: Exchange, requestedProfile?: ProfileName | "openai"): Verdict {
  const profile = requestedProfile && profileNamed(requestedProfile)?.name;
  const findings: Finding[] = [];
  const shown: string[] = [];
  const report = (rule: string, violations: Iterable<Violation>) => {
    shown.push(rule);
    let count = 0;
    for (const violation of violations) {
      if (++count > maxViolations) break;
      findings.push({ rule, ...violation });
    }
  };
  const apply = <View>(rule: Judging<View>, view: View) => {
    if (rule.shown?.(view) !== false) report(rule.id, rule.judge(view));
  };
  const applyProfile = <View extends StreamView | BodyView>(
    rule: string,
    judging: ProfileJudge<View> | undefined,
    view: View,
  ) => {
    if (profile === "exact" && rule !== layoutRule.id && isBeforeExact(view)) return;
    if (profile && judging?.shown(view, profile)) report(rule, judging.judge(view, profile));
  };
  for (const rule of textRules) apply(rule, exchange);
  if (vendorOf(exchange) === "Ollama") {
    const view = ollamaView(exchange);
    for (const rule of ollamaRules) apply(rule, view);
    return { findings, shown };
  }
  const profileRulesOfVendor = profileRules.filter(({ vendor = "OpenAI" }) => vendor === vendorOf(exchange));
  if (isStream(exchange)) {
    const view = streamView(exchange);
    for (const rule of streamRules) if (rule.endpoints.includes(exchange.endpoint)) apply(rule, view);
    const message = streamedMessage(view);
    if (message) for (const rule of messageRules) apply(rule, message);
    const response = streamedResponse(view);
    if (response) for (const rule of everyResponseRule) apply(rule, response);
    for (const rule of profileRulesOfVendor) applyProfile(rule.id, rule.stream, view);
  } else {
    const view = bodyView(exchange);
    for (const rule of bodyRules) apply(rule, view);
    const message = wholeMessage(view);
    if (message) for (const rule of messageRules) apply(rule, message);
    const response = wholeResponse(view);
    if (response) for (const rule of everyResponseRule) apply(rule, response);
    for (const rule of profileRulesOfVendor) applyProfile(rule.id, rule.body, view);
  }
  return { findings, shown };
}

type Judging<View> = RuleFacts & { shown?(view: View): boolean; judge(view: View): Iterable<Violation> };
