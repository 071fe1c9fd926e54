import type { Exchange } from "../exchange.ts";
import { shown } from "../place.ts";
import type { Finding } from "../rule.ts";
import { type GroupRule, type GroupVerdict } from "./group-rule.ts";
import { saidIn } from "./said.ts";

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

/**
 * Compares two plain answers to a request with its streamed answer. If the two plain answers differ, the model is not deterministic and
 * nothing can be shown.
 */
export function judgeSame(plain: Exchange, again: Exchange, streamed: Exchange): GroupVerdict {
  const [first, second, third] = [saidIn(plain), saidIn(again), saidIn(streamed)];
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
