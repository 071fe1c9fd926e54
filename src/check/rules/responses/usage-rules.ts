import { isObject } from "../../../core/json.ts";
import { shown } from "../place.ts";
import type { Json } from "../view.ts";
import { isCall, type ResponseView, textOf } from "./response-view.ts";
import type { ResponseRule } from "./response-rule.ts";

const wrongCounts = "token counts are wrong";

function usageOf({ response }: ResponseView): Json | undefined {
  return isObject(response.usage) ? response.usage : undefined;
}

function hasUsage(view: ResponseView): boolean {
  return usageOf(view) !== undefined;
}

function detail(usage: Json, of: string, name: string): unknown {
  const details = usage[of];
  return isObject(details) ? details[name] : undefined;
}

/** Token counts. Source: specification, `ResponseUsage`; issues as named. */
export const usageRules: readonly ResponseRule[] = [
  {
    id: "responses/usage",
    severity: "error",
    concern: wrongCounts,
    says: "A response that completed, or was cut, has usage.",
    source: "recordings 642 of 642; source code of AI SDK 5 (@ai-sdk/openai 2): its schema demands it",
    breaks: ["AI SDK 5 (generateText throws; of a stream the end is not read)", "LangChain, cost accounting"],
    judges: "response",
    shown: ({ response }) => response.status === "completed" || response.status === "incomplete",
    *judge(view) {
      if (!hasUsage(view)) yield view.at("usage", `usage is ${shown(view.response.usage)}`);
    },
  },
  {
    id: "responses/usage-type",
    severity: "error",
    concern: wrongCounts,
    says: "usage has input_tokens, output_tokens, total_tokens and both details (cached_tokens, reasoning_tokens), all integers, 0 or more.",
    source: "specification: ResponseUsage; llama.cpp #22659 (no output_tokens_details)",
    breaks: ["typed clients (Go, Rust, Java, C#)"],
    judges: "response",
    shown: hasUsage,
    *judge(view) {
      const usage = usageOf(view) ?? {};
      const counts: Readonly<Record<string, unknown>> = {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        total_tokens: usage.total_tokens,
        cached_tokens: detail(usage, "input_tokens_details", "cached_tokens"),
        reasoning_tokens: detail(usage, "output_tokens_details", "reasoning_tokens"),
      };
      for (const [name, value] of Object.entries(counts))
        if (!(Number.isInteger(value) && (value as number) >= 0)) yield view.at("usage", `${name} is ${shown(value)}`);
    },
  },
  {
    id: "responses/usage-sum",
    severity: "error",
    concern: wrongCounts,
    says: "total_tokens is the sum of input_tokens and output_tokens.",
    source: "specification; recordings 642 of 642",
    breaks: ["cost accounting"],
    judges: "response",
    shown: hasUsage,
    *judge(view) {
      const { input_tokens: input, output_tokens: output, total_tokens: total } = usageOf(view) ?? {};
      if (typeof input === "number" && typeof output === "number" && total !== input + output)
        yield view.at("total_tokens", `${shown(total)} is not ${input} + ${output}`);
    },
  },
  {
    id: "responses/usage-details",
    severity: "warning",
    concern: wrongCounts,
    says: "cached_tokens is at most input_tokens, and reasoning_tokens at most output_tokens.",
    source: "specification",
    breaks: ["cost accounting"],
    judges: "response",
    shown: hasUsage,
    *judge(view) {
      const usage = usageOf(view) ?? {};
      const cached = detail(usage, "input_tokens_details", "cached_tokens");
      const reasoning = detail(usage, "output_tokens_details", "reasoning_tokens");
      if (Number(cached ?? 0) > Number(usage.input_tokens))
        yield view.at("cached_tokens", `cached_tokens ${shown(cached)} of ${shown(usage.input_tokens)}`);
      if (Number(reasoning ?? 0) > Number(usage.output_tokens))
        yield view.at("reasoning_tokens", `reasoning_tokens ${shown(reasoning)} of ${shown(usage.output_tokens)}`);
    },
  },
  {
    id: "responses/usage-zero",
    severity: "error",
    concern: wrongCounts,
    says: "Where the input was counted, output_tokens is not 0 after text or calls.",
    source: "LiteLLM #8349, LM Studio #1602",
    breaks: ["cost accounting"],
    judges: "response",
    shown: hasUsage,
    *judge(view) {
      const { input_tokens: input, output_tokens: output } = usageOf(view) ?? {};
      const spoke = textOf(view) !== "" || view.output.some(isCall);
      if (output === 0 && input !== 0 && spoke) yield view.at("output_tokens", "output_tokens 0 after an answer");
    },
  },
  {
    id: "responses/usage-counted",
    // Clients refuse a response without usage, so a server that cannot count has nothing better to say.
    severity: "warning",
    concern: wrongCounts,
    says: "The tokens were counted: the counts are not all 0.",
    source: "LiteLLM #8349, LM Studio #1602",
    breaks: ["cost accounting"],
    judges: "response",
    shown: hasUsage,
    *judge(view) {
      const { input_tokens: input, output_tokens: output } = usageOf(view) ?? {};
      if (input === 0 && output === 0) yield view.at("usage", "all counts are 0");
    },
  },
];
