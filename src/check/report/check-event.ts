import type { Finding, Severity } from "../rules/rule.ts";
import type { Judgement, Report } from "./report.ts";

/** An event of `POST /admin/check`: while a server is checked, and at the end. */
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
  /** Without the judgements, which were sent before. */
  | { readonly type: "done"; readonly report: Omit<Report, "judgements"> };

export interface ShownJudgement extends Omit<Judgement, "shown" | "findings"> {
  readonly findings: readonly (Finding & { readonly severity: Severity })[];
}
