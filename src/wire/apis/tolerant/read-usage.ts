import type { Usage } from "../../core/events.ts";
import type { RepairLog } from "./repairs.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/**
 * Reads a source's `usage` object tolerantly. null: not an object, no counts, or all zero (no prompt has zero tokens, but some servers send
 * zeros until they have counted). Counts are never invented.
 *
 * OpenAI's `completion_tokens` includes reasoning, and `total_tokens` is the sum. Gemini and xAI count reasoning in the total only, so
 * the difference between the total and the sum belongs to the completion. A total below the sum is dropped. Sources:
 * https://ai.google.dev/api/generate-content#UsageMetadata, https://docs.x.ai/docs/guides/reasoning.
 *
 * `timings`: llama.cpp's, next to the usage.
 */
export function readUsage(raw: unknown, repairs: RepairLog, timings?: unknown): Usage | null {
  if (raw === undefined || raw === null) return null;
  const prompt = isObject(raw) ? promptCount(raw) : null;
  const completion = isObject(raw) ? count(raw["completion_tokens"] ?? raw["output_tokens"]) : null;
  if (!isObject(raw) || (prompt ?? 0) + (completion ?? 0) === 0 || (prompt === null && completion === null)) {
    repairs.note("usage-value");
    return null;
  }
  // OpenAI itself omits completion_tokens of 0 (completions endpoint). A missing count is derived from the total.
  const total = count(raw["total_tokens"]);
  const promptTokens = prompt ?? Math.max(0, (total ?? 0) - (completion ?? 0));
  const completionTokens = Math.max(completion ?? 0, (total ?? 0) - promptTokens);
  const promptCounts = raw["prompt_tokens_details"] ?? raw["input_tokens_details"];
  const promptDetails = withCached(details(promptCounts, repairs), raw, timings);
  const cacheWriteDetails = isObject(promptCounts) ? details(promptCounts[writeDetails], repairs) : null;
  const completionDetails = withReasoning(
    details(raw["completion_tokens_details"] ?? raw["output_tokens_details"], repairs),
    raw,
    completionTokens,
  );
  return {
    promptTokens,
    completionTokens,
    ...(promptDetails && { promptDetails }),
    ...(cacheWriteDetails && { cacheWriteDetails }),
    ...(completionDetails && { completionDetails }),
  };
}

/** Source: OpenAI's Responses API, `input_tokens_details`; openai 7.57. */
const writeDetails = "cache_write_tokens_details";

/**
 * The tokens of the prompt. Anthropic's `input_tokens` does not contain those of the cache, which it counts apart; LiteLLM's `prompt_tokens`
 * does (crewAIInc/crewAI#6788).
 */
function promptCount(raw: JsonObject): number | null {
  const prompt = count(raw["prompt_tokens"]);
  const input = prompt ?? count(raw["input_tokens"]);
  const cached = (count(raw["cache_read_input_tokens"]) ?? 0) + (count(raw["cache_creation_input_tokens"]) ?? 0);
  if (input === null || cached === 0) return input;
  return prompt === null || cached > prompt ? input + cached : prompt;
}

/**
 * Adds the tokens that came from a cache and that were written to one, under the names that servers have for them in place of OpenAI's
 * details: `prompt_cache_hit_tokens` (DeepSeek: https://api-docs.deepseek.com/guides/kv_cache), `cached_tokens` in the usage itself (Kimi:
 * https://platform.kimi.ai/docs/api/chat), `cache_n` in llama.cpp's timings (ggml-org/llama.cpp, tools/server/README.md), and Anthropic's two
 * counts (LiteLLM: https://docs.litellm.ai/docs/completion/prompt_caching). Of several counts the highest one is true: gateways
 * fill in zeros for details that they do not know.
 */
function withCached(
  known: Record<string, number> | null,
  raw: JsonObject,
  timings: unknown,
): Record<string, number> | null {
  const cached = highest(
    known?.["cached_tokens"],
    raw["prompt_cache_hit_tokens"],
    raw["cached_tokens"],
    raw["cache_read_input_tokens"],
    isObject(timings) ? timings["cache_n"] : undefined,
  );
  const written = highest(known?.["cache_write_tokens"], raw["cache_creation_input_tokens"]);
  if (cached === null && written === null) return known;
  return {
    ...known,
    ...(cached !== null && { cached_tokens: cached }),
    ...(written !== null && { cache_write_tokens: written }),
  };
}

/** Adds `reasoning_tokens` of the usage itself (Perplexity: https://docs.perplexity.ai/api-reference), if the completion contains them. */
function withReasoning(
  known: Record<string, number> | null,
  raw: JsonObject,
  completionTokens: number,
): Record<string, number> | null {
  const reasoning = highest(known?.["reasoning_tokens"], raw["reasoning_tokens"]);
  if (reasoning === null || reasoning === known?.["reasoning_tokens"] || reasoning > completionTokens) return known;
  return { ...known, reasoning_tokens: reasoning };
}

/** The highest one of several counts; `null` if no value is a count. */
function highest(...values: readonly unknown[]): number | null {
  const counts = values.map(count).filter((value) => value !== null);
  return counts.length === 0 ? null : Math.max(...counts);
}

function count(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? Math.trunc(value) : null;
}

function details(value: unknown, repairs: RepairLog): Record<string, number> | null {
  if (!isObject(value)) return null;
  const kept: Record<string, number> = {};
  for (const [key, raw] of Object.entries(value)) {
    const number = count(raw);
    if (number !== null) kept[key] = number;
    else if (raw !== null && key !== writeDetails) repairs.note("usage-value");
  }
  return kept;
}
