import type { Usage } from "../../core/events.ts";
import type { RepairLog } from "./repairs.ts";
import { isObject } from "../../core/json.ts";

/**
 * Reads a source's `usage` object tolerantly. null: not an object, no counts, or all zero (no prompt has zero tokens, but some servers send
 * zeros until they have counted). Counts are never invented.
 *
 * OpenAI's `completion_tokens` includes reasoning, and `total_tokens` is the sum. Gemini and xAI count reasoning in the total only, so
 * the difference between the total and the sum belongs to the completion. A total below the sum is dropped. Sources:
 * https://ai.google.dev/api/generate-content#UsageMetadata, https://docs.x.ai/docs/guides/reasoning.
 */
export function readUsage(raw: unknown, repairs: RepairLog): Usage | null {
  if (raw === undefined || raw === null) return null;
  const prompt = isObject(raw) ? count(raw["prompt_tokens"] ?? raw["input_tokens"]) : null;
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
  const promptDetails = details(promptCounts, repairs);
  const cacheWriteDetails = isObject(promptCounts) ? details(promptCounts[writeDetails], repairs) : null;
  const completionDetails = details(raw["completion_tokens_details"] ?? raw["output_tokens_details"], repairs);
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
