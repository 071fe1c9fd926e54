import { once } from "node:events";
import { judgementOf } from "../../../judge/check/probe/judged.ts";
import { CheckError, type CheckProgress, runCheck } from "../../../judge/check/probe/run-check.ts";
import type { Judgement, ShownJudgement } from "../../../judge/check/report/report.ts";
import { reportOf } from "../../../judge/check/report/report-of.ts";
import { ruleNamed } from "../../../judge/check/rules/every-rule.ts";
import type { CheckRequest } from "../../server/admin/model-control.ts";
import type { FromCheck } from "./open-checker.ts";

// A process of its own: a server under check may send what it likes, judging long answers takes time that the server's clients would wait,
// and a check that is not wanted any more ends with its process.

/** How long one probe may take, in milliseconds. */
const timeout = 60_000;
/** The longest that all answers together may be, in characters: all of them are kept for the report. */
const maxCharacters = 32 * 1024 * 1024;

const [asked] = (await once(process, "message")) as [CheckRequest];
let characters = 0;

function post(message: FromCheck): void {
  process.send?.(message);
}

function onProgress({ judged, ...progress }: CheckProgress): void {
  const judgements = judged.map(judgementOf);
  for (const { exchange } of judgements) characters += exchange?.response.body.length ?? 0;
  if (characters > maxCharacters)
    throw new CheckError(`${asked.url} sends too much: its answers have more than ${maxCharacters} characters.`);
  post({ type: "progress", ...progress, judgements: judgements.map(shown) });
}

function shown(judgement: Judgement): ShownJudgement {
  const { shown: _, ...judged } = judgement;
  const findings = judged.findings.map((found) => ({ ...found, severity: ruleNamed(found.rule).severity }));
  return { ...judged, findings };
}

try {
  const run = await runCheck({ ...asked, timeout, concurrency: 2, onProgress });
  const { judgements: _, ...report } = reportOf(run.url, run.judged.map(judgementOf), {
    model: run.model,
    remarks: run.remarks,
    ...(asked.profile && { profile: asked.profile }),
  });
  post({ type: "done", report });
} catch (error) {
  if (!(error instanceof CheckError)) throw error;
  post({ type: "failed", message: error.problem });
}
