import type { ShownJudgement } from "../../check/report/check-event.ts";
import type { Severity } from "../../check/rules/rule.ts";

/** The result of a probe, as a row of a table. */
export interface Outcome {
  readonly kind: Severity | "passed" | "not shown";
  readonly words: string;
  /** The rules that were broken, each once. */
  readonly rules: readonly string[];
}

const severities: readonly Severity[] = ["error", "warning", "note"];

export function outcomeOf({ findings, notShown }: ShownJudgement): Outcome {
  const rules = [...new Set(findings.map(({ rule }) => rule))];
  const kind = severities.find((severity) => findings.some((finding) => finding.severity === severity));
  if (kind === undefined)
    return notShown === undefined
      ? { kind: "passed", words: "✓ passed", rules }
      : { kind: "not shown", words: `– not shown: ${notShown}`, rules };
  const worst = new Set(findings.filter(({ severity }) => severity === kind).map(({ rule }) => rule)).size;
  return { kind, words: `${signs[kind]} ${worst} ${kind}${worst === 1 ? "" : "s"}`, rules };
}

/** Names severities, which must not be shown by color only. */
export const signs: Readonly<Record<Severity, string>> = { error: "✗", warning: "!", note: "·" };

/** Whether the same probe has shown one thing with one server and another with the other. */
export function differ(one: Outcome | undefined, other: Outcome | undefined): boolean {
  if (!one || !other) return false;
  return one.kind !== other.kind || one.rules.toSorted().join() !== other.rules.toSorted().join();
}
