import { judgeCapture } from "../../check/check-capture.ts";
import { reportOf } from "../../check/report/report-of.ts";
import type { Report } from "../../check/report/report.ts";
import type { Exchange } from "../../check/rules/exchange.ts";
import { judge } from "../../check/rules/judge.ts";
import { lean } from "../../wire/profile.ts";
import { repairCapture } from "../../wire/repair-capture.ts";
import type { CapturedApi, RepairedCapture } from "../../wire/repaired-capture.ts";
import type { Capture } from "./capture.ts";

/** A capture, what the rules say of it, and what Truewire would send in its place. */
export interface Judged {
  readonly capture: Capture;
  readonly report: Report;
  /** Of answers that a model has given; none of refusals and of lists. */
  readonly repaired?: RepairedCapture;
}

/** Throws for no capture, however broken. */
export function judged(capture: Capture): Judged {
  const { name, body, request, method = "POST", path = "", status, headers, complete = true } = capture;
  const alone = judgeCapture(name, body, request);
  const known = alone.exchange;
  if (!known) throw new Error("a capture is judged by its exchange");
  const exchange: Exchange = {
    endpoint: endpointOf(method, path) ?? known.endpoint,
    request: { method, path, ...(request && { body: request }) },
    response: { ...known.response, status: status ?? known.response.status, headers: headers ?? null, complete },
  };
  const { findings, shown } = judge(exchange);
  const report = reportOf(name, [{ id: name, about: "a capture", exchange, findings, shown }]);
  const from = repairable.find((api) => api === exchange.endpoint);
  if (!from || exchange.response.status >= 400) return { capture, report };
  const now = Math.floor(Date.now() / 1000);
  return {
    capture,
    report,
    repaired: repairCapture(body, { profile: lean, from, random: Math.random, now, request }),
  };
}

const repairable: readonly CapturedApi[] = ["chat", "completions", "responses", "messages"];

/** Which endpoint a path means; undefined where it does not say. */
function endpointOf(method: string, path: string): Exchange["endpoint"] | undefined {
  const posted: readonly [string, Exchange["endpoint"]][] = [
    ["/chat/completions", "chat"],
    ["/completions", "completions"],
    ["/responses", "responses"],
    ["/messages", "messages"],
    ["/embeddings", "embeddings"],
  ];
  return method === "POST" ? posted.find(([end]) => path.endsWith(end))?.[1] : undefined;
}
