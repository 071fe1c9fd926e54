import { everyRule } from "../rules/every-rule.ts";
import { formOf } from "../rules/form.ts";
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
    for (const finding of judgement.findings) {
      const list = evidence.get(finding.rule) ?? [];
      evidence.set(finding.rule, list);
      list.push(evidenceOf(judgement, finding));
    }
  }
  const applying = everyRule.filter(({ judges }) => judges !== "profile" || profile !== undefined);
  const rules = applying.map((rule): RuleOutcome => {
    const { id, severity, concern, says, source, breaks } = rule;
    const found = evidence.get(id) ?? [];
    const status = found.length > 0 ? "broken" : shown.has(id) ? "passed" : "not shown";
    return { id, severity, concern, says, source, breaks, status, evidence: found };
  });
  const count = (fits: (rule: RuleOutcome) => boolean) => rules.filter(fits).length;
  const broken = (severity: Severity) => count((rule) => rule.status === "broken" && rule.severity === severity);
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

/** Length of the excerpt around a violation, in characters. */
const around = 80;

function evidenceOf({ id, exchange }: Judgement, { found, start, end }: Finding): Evidence {
  const body = exchange?.response.body;
  if (!body) return { in: id, found, start, end };
  const stop = Math.min(end, start + 2 * around);
  const excerpt = {
    before: body.slice(Math.max(0, start - around), start),
    offending: body.slice(start, stop),
    after: body.slice(stop, stop + around),
  };
  return { in: id, found, start, end, excerpt };
}
