import type { Exchange } from "../exchange.ts";
import { isStream } from "../judge.ts";
import { saidInMessage } from "../messages/said.ts";
import { shown } from "../place.ts";
import { saidInResponse } from "../responses/said.ts";
import type { Finding } from "../rule.ts";
import { callsOf } from "../stream/calls.ts";
import { isObject } from "../../../generation/json.ts";
import { bodyView, type Json, streamView } from "../view.ts";
import type { GroupRule } from "./group-rule.ts";

export const sameRules: readonly GroupRule[] = [
  {
    id: "same/text",
    severity: "error",
    concern: "text is lost or wrong",
    says: "The same request gets the same text, streamed or not.",
    source: "LM Studio #1071, vLLM #11392, SGLang #35564",
    breaks: ["users (words are missing in one of the two)"],
    judges: "group",
  },
  {
    id: "same/calls",
    severity: "error",
    concern: "tool calls break",
    says: "The same request gets the same tool calls, streamed or not.",
    source: "llama.cpp #12379",
    breaks: ["agents (they work in one of the two)"],
    judges: "group",
  },
  {
    id: "same/finish",
    severity: "error",
    concern: "the answer seems to end wrongly",
    says: "The same request gets the same finish reason, streamed or not.",
    source: "LiteLLM #12481",
    breaks: ["agents (they work in one of the two)"],
    judges: "group",
  },
];

/** What an answer says, streamed or not. */
interface Said {
  readonly text: string;
  readonly calls: string;
  readonly finish: string;
}

/**
 * Compares two plain answers to a request with its streamed answer. If the two plain answers differ, the model is not deterministic and
 * nothing can be shown.
 */
export function judgeSame(
  plain: Exchange,
  again: Exchange,
  streamed: Exchange,
): { findings: Finding[]; shown: string[] } {
  const [first, second, third] = [said(plain), said(again), said(streamed)];
  const none = { findings: [], shown: [] };
  if (!first || !second || !third || JSON.stringify(first) !== JSON.stringify(second)) return none;
  const findings: Finding[] = [];
  for (const member of ["text", "calls", "finish"] as const) {
    if (first[member] === third[member]) continue;
    const found = `${shown(third[member])} streamed, ${shown(first[member])} not`;
    findings.push({ rule: `same/${member}`, start: 0, end: 0, found });
  }
  return { findings, shown: sameRules.map((rule) => rule.id) };
}

function said(exchange: Exchange): Said | undefined {
  if (exchange.response.status !== 200) return undefined;
  if (exchange.endpoint === "responses") return saidInResponse(exchange);
  if (exchange.endpoint === "messages") return saidInMessage(exchange);
  return isStream(exchange) ? saidInStream(exchange) : saidAtOnce(exchange);
}

function saidInStream(exchange: Exchange): Said {
  const view = streamView(exchange);
  const track = view.choices.get(0) ?? [];
  return {
    text: track.map(({ delta }) => (typeof delta.content === "string" ? delta.content : "")).join(""),
    calls: JSON.stringify(
      callsOf(view)
        .filter((call) => call.choice === 0)
        .map((call) => [call.name, call.arguments]),
    ),
    finish: String(track.find(({ choice }) => typeof choice.finish_reason === "string")?.choice.finish_reason),
  };
}

function saidAtOnce(exchange: Exchange): Said | undefined {
  const { value } = bodyView(exchange);
  const choice = isObject(value) && Array.isArray(value.choices) ? (value.choices[0] as Json | undefined) : undefined;
  if (!isObject(choice) || !isObject(choice.message)) return undefined;
  const { content, tool_calls: calls } = choice.message;
  const list = Array.isArray(calls) ? calls.filter(isObject) : [];
  return {
    text: typeof content === "string" ? content : "",
    calls: JSON.stringify(
      list.map((call) => (isObject(call.function) ? [call.function.name, call.function.arguments] : [])),
    ),
    finish: String(choice.finish_reason),
  };
}
