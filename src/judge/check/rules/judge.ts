import { profileNamed } from "../../../wire/apis/profile.ts";
import { answerRules } from "./body/answer.ts";
import { callRules } from "./body/call.ts";
import { failureRules, jsonHeaderRules } from "./body/failure.ts";
import { modelRules } from "./body/models.ts";
import { bodyRequestRules } from "./body/request-rules.ts";
import { type Exchange, isStream, vendorOf } from "./exchange.ts";
import { isBeforeExact } from "./form.ts";
import { geminiRules, geminiView } from "./gemini/gemini-rules.ts";
import { messageBodyRules } from "./messages/body-rules.ts";
import { messageRules } from "./messages/message-rules.ts";
import { streamedMessage, wholeMessage } from "./messages/message-view.ts";
import { messageProfileBodyRules, messageProfileStreamRules } from "./messages/profile-rules.ts";
import { ollamaRules, ollamaView } from "./ollama/ollama-rules.ts";
import { chunkDeltaStreamRules } from "./profile/delta-rules.ts";
import { layoutBodyRules, layoutStreamRules } from "./profile/layout-rule.ts";
import { memberBodyRules, memberStreamRules } from "./profile/member-rules.ts";
import type { ProfileName } from "./profile/profile-rule.ts";
import { valueBodyRules, valueStreamRules } from "./profile/value-rules.ts";
import { everyResponseRules } from "./responses/response-rules.ts";
import { responseProfileBodyRules, responseProfileStreamRules } from "./responses/profile-rules.ts";
import { streamedResponse, wholeResponse } from "./responses/response-view.ts";
import { responseBodyRules, socketErrorRules } from "./responses/body-rules.ts";
import { type Finding, maxViolations, notShown, type Rules } from "./rule.ts";
import { specBodyRules } from "./spec/spec-rules.ts";
import { streamRules } from "./stream/stream-rules.ts";
import { textRules } from "./text-rules.ts";
import { type BodyView, bodyView, type StreamView, streamView } from "./view.ts";

/** The rules about answers that are not streamed. */
const bodyRules: Rules<BodyView> = {
  ...answerRules,
  ...callRules,
  ...bodyRequestRules,
  ...failureRules,
  ...modelRules,
  ...jsonHeaderRules,
  ...specBodyRules,
  ...messageBodyRules,
  ...responseBodyRules,
  ...socketErrorRules,
};

/** The rules about profiles of OpenAI's APIs, but for the layout, which does not depend on the date of an answer. */
const openaiStreamRules: Rules<StreamView, ProfileName> = {
  ...memberStreamRules,
  ...chunkDeltaStreamRules,
  ...valueStreamRules,
  ...responseProfileStreamRules,
};
const openaiBodyRules: Rules<BodyView, ProfileName> = {
  ...memberBodyRules,
  ...valueBodyRules,
  ...responseProfileBodyRules,
};

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
  const apply = <View, Profile>(rules: Rules<View, Profile>, view: View, profile: Profile) => {
    for (const [rule, judging] of Object.entries(rules)) {
      const violations = judging(view, profile);
      let step = violations.next();
      for (let count = 0; step.done !== true && count < maxViolations; count++) {
        findings.push({ rule, ...step.value });
        step = violations.next();
      }
      if (step.done !== true || step.value !== notShown) shown.push(rule);
    }
  };
  apply(textRules, exchange, undefined);
  const vendor = vendorOf(exchange);
  if (vendor === "Ollama") {
    apply(ollamaRules, ollamaView(exchange), undefined);
    return { findings, shown };
  }
  if (vendor === "Google") {
    apply(geminiRules, geminiView(exchange), undefined);
    return { findings, shown };
  }
  const view = isStream(exchange) ? streamView(exchange) : bodyView(exchange);
  const isStreamed = "chunks" in view;
  if (isStreamed) apply(streamRules, view, undefined);
  else apply(bodyRules, view, undefined);
  const message = isStreamed ? streamedMessage(view) : wholeMessage(view);
  if (message) apply(messageRules, message, undefined);
  const response = isStreamed ? streamedResponse(view) : wholeResponse(view);
  if (response) apply(everyResponseRules, response, undefined);
  if (!profile) return { findings, shown };
  if (vendor === "Anthropic") {
    if (isStreamed) apply(messageProfileStreamRules, view, profile);
    else apply(messageProfileBodyRules, view, profile);
    return { findings, shown };
  }
  if (isStreamed) apply(layoutStreamRules, view, profile);
  else apply(layoutBodyRules, view, profile);
  if (profile === "exact" && isBeforeExact(view)) return { findings, shown };
  if (isStreamed) apply(openaiStreamRules, view, profile);
  else apply(openaiBodyRules, view, profile);
  return { findings, shown };
}
