import { isObject } from "../../../../wire/core/json.ts";
import { bodyView, type Json } from "../view.ts";
import { type Exchange, isStream, vendorOf } from "../exchange.ts";
import type { Finding, Violation } from "../rule.ts";
import { shown } from "../place.ts";

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
    const isOpenAis = ["OpenAI", "Anthropic"].includes(vendorOf(exchange));
    const wantsStream = isOpenAis ? exchange.request.body?.stream === true : isStream(exchange);
    const streams = looksStreamed(exchange);
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

function looksStreamed(exchange: Exchange): boolean {
  const { body, headers } = exchange.response;
  const vendor = vendorOf(exchange);
  if (vendor === "Ollama") return /^[^\n]*\n[^\n]/.test(body) || headers?.["content-type"] === "application/x-ndjson";
  const hasEvents = /^\uFEFF?\s*(data|event|id|retry)?:/.test(body);
  if (vendor !== "Google") return hasEvents;
  const { path } = exchange.request;
  return path.includes(":streamGenerateContent") && !path.includes("alt=sse")
    ? body.trimStart().startsWith("[")
    : hasEvents;
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
