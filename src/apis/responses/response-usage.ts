import type { Usage } from "../../core/events.ts";
import type { JsonValue } from "../json-text.ts";

const unknown: Usage = { promptTokens: 0, completionTokens: 0 };

/**
 * `usage` of a response that is over; both details are always there. What nobody counted is 0, not null: a response that is over always
 * has its usage (642 of 642 recordings; the specification has no null), and without it AI SDK 5 (@ai-sdk/openai 2) refuses a body, and
 * of a stream does not read how it ended.
 */
export function responseUsage(usage: Usage = unknown): JsonValue {
  const { promptTokens, completionTokens, totalTokens, promptDetails = {}, completionDetails = {} } = usage;
  const { cache_write_tokens: written = 0, cached_tokens: cached = 0 } = promptDetails;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cache_write_tokens: written, cached_tokens: cached },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: completionDetails["reasoning_tokens"] ?? 0 },
    total_tokens: totalTokens ?? promptTokens + completionTokens,
  };
}
