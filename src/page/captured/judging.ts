import { judgeAnswer } from "../../judge/check/check-capture.ts";
import { reportOf } from "../../judge/check/report/report-of.ts";
import type { Report } from "../../judge/check/report/report.ts";
import { lean } from "../../wire/apis/profile.ts";
import { capturedApis } from "../../wire/apis/ordered-capture.ts";
import { rewrittenCapture } from "../../wire/apis/repair-capture.ts";
import type { RepairedCapture } from "../../wire/apis/repair-capture.ts";
import type { Capture } from "./capture.ts";
import { random } from "../../wire/random/random.ts";

/** A capture, what the rules say of it, and what Truewire would send in its place. */
export interface JudgedCapture {
  readonly capture: Capture;
  readonly report: Report;
  /** Of answers that a model has given; none of refusals and of lists. */
  readonly repaired?: RepairedCapture;
}

/** Throws for no capture, however broken. */
export function judged(capture: Capture): JudgedCapture {
  const { name, body, request, ...around } = capture;
  const judgement = judgeAnswer(name, body, { ...around, request: request && { ...request } });
  const { exchange } = judgement;
  const report = reportOf(name, [judgement]);
  const from = capturedApis.find((api) => api === exchange.endpoint);
  if (!from || exchange.response.status >= 400) return { capture, report };
  const now = Math.floor(Date.now() / 1000);
  return {
    capture,
    report,
    repaired: rewrittenCapture(body, { profile: lean, from, random, now, request }),
  };
}
