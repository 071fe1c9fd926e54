import type { Finding, Severity } from "../../check/rules/rule.ts";
import type { Judgement, Report } from "../../check/report/report.ts";

/** What the thread of a check tells: events of `POST /admin/check`, or why there is nothing to tell. */
export type ThreadMessage = CheckEvent | { readonly type: "failed"; readonly message: string };

export type CheckEvent =
  | {
      readonly type: "progress";
      readonly done: number;
      readonly all: number;
      /** What was asked last. */
      readonly about: string;
      /** What it has shown. */
      readonly judgements: readonly ShownJudgement[];
    }
  /** The judgements were told before. */
  | { readonly type: "done"; readonly report: Omit<Report, "judgements"> };

export interface ShownJudgement extends Omit<Judgement, "shown" | "findings"> {
  readonly findings: readonly (Finding & { readonly severity: Severity })[];
}
