import type { Exchange } from "./exchange.ts";
import { type BodyRule, type Finding, type Offence, offencesShown, type RuleFacts, type StreamRule } from "./rule.ts";
import { bodyRules } from "./body/body-rules.ts";
import { streamRules } from "./stream/stream-rules.ts";
import { bodyView, streamView } from "./view.ts";

export interface Verdict {
  readonly findings: readonly Finding[];
  /** Rules that this exchange could show, broken or not. */
  readonly shown: readonly string[];
}

/** Judges one exchange by every rule that applies to it. Pure: the same exchange has the same verdict everywhere. */
export function judge(exchange: Exchange): Verdict {
  const findings: Finding[] = [];
  const shown: string[] = [];
  const apply = <View>(
    rule: RuleFacts & { shown?(view: View): boolean; judge(view: View): Iterable<Offence> },
    view: View,
  ) => {
    if (rule.shown && !rule.shown(view)) return;
    shown.push(rule.id);
    let count = 0;
    for (const offence of rule.judge(view)) {
      if (++count > offencesShown) break;
      findings.push({ rule: rule.id, ...offence });
    }
  };
  if (isStream(exchange)) {
    const view = streamView(exchange);
    for (const rule of streamRules) if (appliesTo(rule, exchange)) apply(rule, view);
  } else {
    const view = bodyView(exchange);
    for (const rule of bodyRules as readonly BodyRule[]) apply(rule, view);
  }
  return { findings, shown };
}

function appliesTo(rule: StreamRule, exchange: Exchange): boolean {
  return (rule.endpoints as readonly string[]).includes(exchange.endpoint);
}

/** A stream is what was asked for as one and answered with 200; without the request, what looks like one. */
export function isStream(exchange: Exchange): boolean {
  const { request, response } = exchange;
  if (response.status !== 200) return false;
  if (request.body) return request.body.stream === true;
  return (
    response.headers?.["content-type"]?.startsWith("text/event-stream") ??
    /^\s*(data|event|id|retry|):/.test(response.body)
  );
}
