import type { Finding, Severity } from "../rules/rule.ts";
import type { Judgement, Report } from "./report.ts";

/** What `POST /admin/check` tells while a server is checked, and at its end. */
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
