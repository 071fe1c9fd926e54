import { isObject } from "../../../wire/core/json.ts";
import { everyRule, isOfProfile, ruleNamed } from "../rules/every-rule.ts";
import { formOf } from "../rules/form.ts";
import { capturedApis } from "../../../wire/apis/ordered-capture.ts";
import { lean } from "../../../wire/apis/profile.ts";
import { rewrittenCapture, rewrittenParts } from "../../../wire/apis/repair-capture.ts";
import { isStream } from "../rules/exchange.ts";
import { framesOf } from "../rules/frames.ts";
import { parsedJson } from "../rules/view.ts";
import type { ProfileName } from "../rules/profile/profile-rule.ts";
import type { Finding, Severity } from "../rules/rule.ts";
import type { Evidence, Judgement, Report, RuleOutcome } from "./report.ts";

export interface ReportFacts {
  readonly model?: string;
  readonly profile?: ProfileName;
  readonly remarks?: readonly string[];
}

/** Without a demanded profile, the rules about profiles are left out. */
export function reportOf(subject: string, judgements: readonly Judgement[], facts: ReportFacts = {}): Report {
  const { model, profile, remarks = [] } = facts;
  const shown = new Set(judgements.flatMap((judgement) => judgement.shown));
  const evidence = new Map<string, Evidence[]>();
  for (const judgement of judgements) {
    const rightOf = rightAnswer(judgement);
    for (const finding of judgement.findings) {
      const list = evidence.get(finding.rule) ?? [];
      evidence.set(finding.rule, list);
      list.push({ ...evidenceOf(judgement, finding), ...rightOf(finding) });
    }
  }
  const applying = everyRule.filter((rule) => profile !== undefined || !isOfProfile(rule));
  const outcomes = applying.map((rule): RuleOutcome => {
    const { id, severity, concern, says, source, breaks } = rule;
    const found = evidence.get(id) ?? [];
    const status = found.length > 0 ? "broken" : shown.has(id) ? "passed" : "not shown";
    return { id, severity, concern, says, source, breaks, status, evidence: found };
  });
  const rules = joinMistakes(outcomes);
  const count = (fits: (rule: RuleOutcome) => boolean) => rules.filter(fits).length;
  const broken = (severity: Severity) =>
    count((rule) => rule.status === "broken" && rule.severity === severity && rule.partOf === undefined);
  const forms = judgements.flatMap(({ exchange }) => (exchange ? (formOf(exchange) ?? []) : []));
  return {
    subject,
    ...(model !== undefined && { model }),
    ...(profile !== undefined && { profile }),
    remarks,
    forms: [...new Set(forms)],
    judgements,
    rules,
    counts: {
      error: broken("error"),
      warning: broken("warning"),
      note: broken("note"),
      passed: count((rule) => rule.status === "passed"),
      "not shown": count((rule) => rule.status === "not shown"),
    },
  };
}

/** Finds the broken rules that show a mistake which another broken rule shows, too. */
function joinMistakes(outcomes: readonly RuleOutcome[]): RuleOutcome[] {
  const broken = new Map(outcomes.flatMap((rule) => (rule.status === "broken" ? [[rule.id, rule]] : [])));
  const causes = new Map<string, string>();
  for (const rule of broken.values()) {
    const cause = causeOf(rule, broken);
    if (cause !== undefined) causes.set(rule.id, cause);
  }
  const rootOf = (id: string): string => {
    const cause = causes.get(id);
    return cause === undefined ? id : rootOf(cause);
  };
  return outcomes.map((rule) => (causes.has(rule.id) ? { ...rule, partOf: rootOf(rule.id) } : rule));
}

/** The id of the rule that shows the cause of a broken rule. Rules about schemas are general: a rule about the same member says more. */
function causeOf(rule: RuleOutcome, broken: ReadonlyMap<string, RuleOutcome>): string | undefined {
  const followed = ruleNamed(rule.id).follows?.find((id) => {
    const places = broken.get(id)?.evidence ?? [];
    return rule.evidence.every((evidence) => places.some((place) => place.in === evidence.in));
  });
  if (followed !== undefined || !rule.evidence.every(({ member }) => member !== undefined)) return followed;
  const isSame = (evidence: Evidence, other: RuleOutcome): boolean =>
    other.evidence.some((place) => overlap(place, evidence) && isAbout(place, other, evidence.member ?? ""));
  const specific = [...broken.values()].filter((other) => other.id !== rule.id && other.severity !== "note");
  return specific.find((other) => rule.evidence.every((evidence) => isSame(evidence, other)))?.id;
}

function overlap(one: Evidence, other: Evidence): boolean {
  return one.in === other.in && one.start < other.end && other.start < one.end;
}

/** Whether the violation of a specific rule names the member. */
function isAbout({ found, member }: Evidence, { says }: RuleOutcome, name: string): boolean {
  if (member !== undefined) return false;
  const spaced = (text: string): string => text.replaceAll("_", " ");
  return name !== "" && spaced(`${found} ${says}`).includes(spaced(name));
}

/** Length of the excerpt around a violation, in characters. */
const around = 80;

function evidenceOf({ id, exchange }: Judgement, finding: Finding): Evidence {
  const { found, start, end, member } = finding;
  const place = { in: id, found, start, end, ...(member !== undefined && { member }) };
  const body = exchange?.response.body;
  if (!body) return place;
  const stop = Math.min(end, start + 2 * around);
  const excerpt = {
    before: body.slice(Math.max(0, start - around), start),
    offending: body.slice(start, stop),
    after: body.slice(stop, stop + around),
  };
  return { ...place, excerpt };
}

/** Returns what Truewire sends in place of the event, or the body, with a violation. An answer is read only if it has one. */
function rightAnswer({ exchange, findings }: Judgement): (finding: Finding) => Pick<Evidence, "right"> {
  const from = capturedApis.find((api) => api === exchange?.endpoint);
  if (!exchange || !from || findings.length === 0 || exchange.response.status >= 400) return () => ({});
  const { body } = exchange.response;
  // Missing ids are made from these, so that a report is always the same.
  const options = { profile: lean, from, random: () => 0, now: 0, request: exchange.request.body };
  if (!isStream(exchange)) {
    if (parsedJson(body) === undefined) return () => ({});
    const right = rewrittenCapture(body, options).body;
    return () => ({ right });
  }
  const frames = framesOf(body);
  if (!frames.some(({ data }) => isObject(parsedJson(data ?? "")))) return () => ({});
  const parts = frames.map(({ start }, at) => body.slice(at === 0 ? 0 : start, frames[at + 1]?.start ?? body.length));
  const sent = rewrittenParts(parts, options);
  const rest = sent.pop() ?? "";
  return ({ start }) => {
    if (start >= body.length) return { right: rest };
    const at = frames.findLastIndex((frame) => frame.start <= start);
    const right = (sent[at] ?? "") + (at === frames.length - 1 ? rest : "");
    return right.trim() === parts[at]?.trim() ? {} : { right };
  };
}
