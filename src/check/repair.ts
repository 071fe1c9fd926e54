import { apiOfCapture, orderedCapture } from "../apis/ordered-capture.ts";
import type { CapturedApi } from "../apis/ordered-capture.ts";
import { rewrittenCapture } from "../apis/repair-capture.ts";
import type { RepairedCapture, RepairOptions } from "../apis/repair-capture.ts";
import { isObject } from "../core/json.ts";
import { judgeAnswer } from "./check-capture.ts";
import { ruleNamed } from "./rules/every-rule.ts";

const paths: Readonly<Record<CapturedApi, string>> = {
  chat: "/chat/completions",
  completions: "/completions",
  responses: "/responses",
  messages: "/messages",
};

/**
 * Repairs a captured answer. One in which the rules of the profile find nothing wrong is returned unchanged. One that has only lost the
 * vendor's way of printing it (profile `exact`) is printed again. Any other is written from its events, as `serve` writes it.
 */
export function repairCapture(capture: string, options: RepairOptions): RepairedCapture {
  const api = options.from === "auto" ? apiOfCapture(capture) : options.from;
  const rewritten = rewrittenCapture(capture, { ...options, from: api });
  const isRight = (body: string): boolean => isRightAnswer(body, api, options);
  if (rewritten.repairs.length === 0 && isRight(capture)) return { ...rewritten, body: capture };
  if (options.profile.name !== "exact") return rewritten;
  const { request, random } = options;
  const ordered = orderedCapture(capture, { api, request, random });
  return ordered !== undefined && isRight(ordered) ? { ...rewritten, body: ordered } : rewritten;
}

/** Whether the rules find nothing wrong in an answer: to its request, or at all, since recorders edit requests. */
function isRightAnswer(body: string, api: CapturedApi, { profile, request }: RepairOptions): boolean {
  return [isObject(request) ? { ...request } : undefined, undefined].some((asked) => {
    const { findings } = judgeAnswer("capture", body, { path: paths[api], request: asked }, profile.name);
    return findings.every(({ rule }) => ruleNamed(rule).severity === "note");
  });
}
