import { isObject } from "../../../../wire/core/json.ts";
import { bodyView, type Json } from "../view.ts";
import { type Exchange, isStream, vendorOf } from "../exchange.ts";
import type { Finding, Violation } from "../rule.ts";
import { shown } from "../place.ts";
import type { GroupRule } from "./group-rule.ts";

const misunderstood = "requests are misunderstood";

export const expectationRules: readonly GroupRule[] = [
  {
    id: "answer/status",
    severity: "error",
    concern: misunderstood,
    says: "A valid request gets status 200.",
    source: "specification",
    breaks: ["every client that makes such a request"],
    judges: "group",
  },
  {
    id: "answer/stream",
    severity: "error",
    concern: "the stream cannot be read",
    says: "The answer is a stream with stream: true, and only then.",
    source: "specification: stream",
    breaks: ["every client (it reads the other form)"],
    judges: "group",
  },
  {
    id: "wrong/status",
    severity: "error",
    concern: misunderstood,
    says: "An invalid request gets a 4xx status, streamed or not, before anything else is sent.",
    source: "specification; recorded errors of OpenAI",
    breaks: ["developers (a mistake goes unnoticed, or looks like a fault of the server)"],
    judges: "group",
  },
  {
    id: "wrong/exact-status",
    severity: "note",
    concern: "it differs from OpenAI",
    says: "An invalid request gets the vendor's status: 400, or 404 for an unknown model or path.",
    source: "recorded errors of OpenAI and Anthropic",
    breaks: [],
    judges: "group",
  },
  {
    id: "wrong/param",
    severity: "warning",
    concern: misunderstood,
    says: "error.param names the invalid member, with its full path; in the Messages API error.message does.",
    source: "specification: Error; recorded errors of OpenAI and Anthropic",
    breaks: ["developers (they cannot see which member is meant)", "forms that mark the wrong field"],
    judges: "group",
  },
];

/** The expected answer of a request; see `Probe.expects`. */
export type Expectation = "answer" | "any" | { readonly refusal: number; readonly param: string | null };

/** Judges one exchange by the expected answer. */
export function judgeExpectation(exchange: Exchange, expects: Expectation): { findings: Finding[]; shown: string[] } {
  const { status, body } = exchange.response;
  const whole: Omit<Violation, "found"> = { start: 0, end: Math.min(body.length, 80) };
  const findings: Finding[] = [];
  const report = (rule: string, found: string) => findings.push({ rule, ...whole, found });
  if (expects === "any") return { findings, shown: [] };
  if (expects === "answer") {
    if (status !== 200) {
      report("answer/status", `status ${status}`);
      return { findings, shown: ["answer/status"] };
    }
    const isOllama = vendorOf(exchange) === "Ollama";
    const wantsStream = isOllama ? isStream(exchange) : exchange.request.body?.stream === true;
    const streams = isOllama
      ? /^[^\n]*\n[^\n]/.test(body) || exchange.response.headers?.["content-type"] === "application/x-ndjson"
      : /^\uFEFF?\s*(data|event|id|retry)?:/.test(body);
    if (wantsStream !== streams)
      report("answer/stream", streams ? "a stream that was not requested" : "no stream although one was requested");
    return { findings, shown: ["answer/status", "answer/stream"] };
  }
  const rules = ["wrong/status"];
  if (status < 400 || status >= 500) report("wrong/status", `status ${status}`);
  else {
    rules.push("wrong/exact-status");
    if (status !== expects.refusal) report("wrong/exact-status", `status ${status} instead of ${expects.refusal}`);
    const { value } = bodyView(exchange);
    const error = isObject(value) && isObject(value.error) ? value.error : {};
    if (expects.param !== null) {
      rules.push("wrong/param");
      const found = vendorOf(exchange) === "Anthropic" ? unnamed(error, expects.param) : misnamed(error, expects.param);
      if (found !== undefined) report("wrong/param", found);
    }
  }
  return { findings, shown: rules };
}

function misnamed({ param }: Json, due: string): string | undefined {
  // A path below it (tool_choice.function.name) names the member more exactly.
  const isNamed = typeof param === "string" && (param === due || param.startsWith(`${due}.`));
  return isNamed ? undefined : `param ${shown(param)} instead of ${shown(due)}`;
}

/** Anthropic's errors have no param: their message begins with the path. */
function unnamed({ message }: Json, due: string): string | undefined {
  return typeof message === "string" && message.includes(due)
    ? undefined
    : `${shown(message)}, which does not name ${due}`;
}
