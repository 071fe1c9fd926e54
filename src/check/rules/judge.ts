import { type Exchange, vendorOf } from "./exchange.ts";
import { bodyRules } from "./body/body-rules.ts";
import { messageRules } from "./messages/message-rules.ts";
import { streamedMessage, wholeMessage } from "./messages/message-view.ts";
import { profileNamed } from "../../apis/profile.ts";
import type { ProfileJudge, ProfileName } from "./profile/profile-rule.ts";
import { profileRules } from "./profile/profile-rules.ts";
import { type Finding, type Offence, offencesShown, type RuleFacts } from "./rule.ts";
import { everyResponseRule } from "./responses/response-rules.ts";
import { streamedResponse, wholeResponse } from "./responses/response-view.ts";
import { streamRules } from "./stream/stream-rules.ts";
import { bodyView, streamView } from "./view.ts";

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Rules that this exchange could show, broken or not. */
  readonly shown: readonly string[];
}

/**
 * Judges one exchange by every rule that applies to it; `demanded`: also by those of the profile that it must have (`openai` is the
 * older name of `exact`). Pure: the same exchange has the same verdict everywhere.
 */
export function judge(exchange: Exchange, demanded?: ProfileName | "openai"): Verdict {
  const profile = demanded && profileNamed(demanded)?.name;
  const findings: Finding[] = [];
  const shown: string[] = [];
  const tell = (rule: string, offences: Iterable<Offence>) => {
    shown.push(rule);
    let count = 0;
    for (const offence of offences) {
      if (++count > offencesShown) break;
      findings.push({ rule, ...offence });
    }
  };
  const apply = <View>(rule: Judging<View>, view: View) => {
    if (rule.shown?.(view) !== false) tell(rule.id, rule.judge(view));
  };
  const demand = <View>(rule: string, judging: ProfileJudge<View> | undefined, view: View) => {
    if (profile && judging?.shown(view, profile)) tell(rule, judging.judge(view, profile));
  };
  const profiles = profileRules.filter(({ vendor = "OpenAI" }) => vendor === vendorOf(exchange));
  if (isStream(exchange)) {
    const view = streamView(exchange);
    for (const rule of streamRules) if (rule.endpoints.includes(exchange.endpoint)) apply(rule, view);
    const message = streamedMessage(view);
    if (message) for (const rule of messageRules) apply(rule, message);
    const response = streamedResponse(view);
    if (response) for (const rule of everyResponseRule) apply(rule, response);
    for (const rule of profiles) demand(rule.id, rule.stream, view);
  } else {
    const view = bodyView(exchange);
    for (const rule of bodyRules) apply(rule, view);
    const message = wholeMessage(view);
    if (message) for (const rule of messageRules) apply(rule, message);
    const response = wholeResponse(view);
    if (response) for (const rule of everyResponseRule) apply(rule, response);
    for (const rule of profiles) demand(rule.id, rule.body, view);
  }
  return { findings, shown };
}

type Judging<View> = RuleFacts & { shown?(view: View): boolean; judge(view: View): Iterable<Offence> };

/** A stream is what was asked for as one and answered with 200, or comes by WebSocket; without the request, what looks like one. */
export function isStream(exchange: Exchange): boolean {
  const { endpoint, request, response } = exchange;
  if (endpoint === "response-socket") return true;
  if (response.status !== 200) return false;
  if (request.body) return request.body.stream === true;
  return (
    response.headers?.["content-type"]?.startsWith("text/event-stream") ??
    /^\s*(data|event|id|retry|):/.test(response.body)
  );
}
