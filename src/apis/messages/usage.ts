import { tokensOf } from "../../core/estimate-tokens.ts";
import type { Usage } from "../../core/events.ts";
import type { AnswerSettings } from "../port.ts";
import type { JsonObject } from "../../core/json.ts";
import type { AskedMessage } from "./asked-message.ts";

type Members = { [name: string]: unknown };

/**
 * The usage of a whole message, and of `message_start`: what went in is told in three parts, read anew, written to a cache and read from
 * one. Members in the order of recordings since February 2026.
 */
export function messageUsage(usage: Usage | undefined, native: JsonObject, settings: AnswerSettings): Members {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = inputCounts(usage);
  return {
    input_tokens,
    cache_creation_input_tokens,
    cache_read_input_tokens,
    cache_creation: native["cache_creation"] ?? {
      ephemeral_5m_input_tokens: cache_creation_input_tokens,
      ephemeral_1h_input_tokens: 0,
    },
    output_tokens: usage?.completionTokens ?? 0,
    ...thinkingTokens(usage),
    service_tier: native["service_tier"] ?? ownTier(settings),
    inference_geo: native["inference_geo"] ?? "not_available",
    ...ofServerTools(native),
  };
}

/**
 * The usage of an answer whose source has not counted its tokens, estimated from its length in characters; undefined where the prompt
 * is not known. Anthropic's clients read the size of the conversation from `input_tokens`, so 0 would mislead them.
 */
export function estimatedUsage({ estimatePrompt }: AskedMessage, characters: number): Usage | undefined {
  return estimatePrompt && { promptTokens: estimatePrompt(), completionTokens: tokensOf(characters) };
}

/** The usage of `message_delta`: all counts again, now final. */
export function finalUsage(usage: Usage | undefined, native: JsonObject): Members {
  return {
    ...inputCounts(usage),
    output_tokens: usage?.completionTokens ?? 0,
    ...thinkingTokens(usage),
    ...ofServerTools(native),
  };
}

function inputCounts(usage: Usage | undefined): {
  input_tokens: number;
  cache_creation_input_tokens: number;
  cache_read_input_tokens: number;
} {
  const { promptTokens = 0, promptDetails = {} } = usage ?? {};
  const read = promptDetails["cached_tokens"] ?? 0;
  const written = promptDetails["cache_write_tokens"] ?? 0;
  return {
    // A source may count its cache beside the prompt.
    input_tokens: Math.max(0, promptTokens - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
  };
}

function thinkingTokens(usage: Usage | undefined): Members {
  const tokens = usage?.completionDetails?.["reasoning_tokens"];
  return tokens === undefined ? {} : { output_tokens_details: { thinking_tokens: tokens } };
}

function ofServerTools({ server_tool_use, iterations }: JsonObject): Members {
  return { ...(server_tool_use !== undefined && { server_tool_use }), ...(iterations !== undefined && { iterations }) };
}

/** `default` is OpenAI's name for the tier that Anthropic calls `standard`. */
function ownTier({ serviceTier = "default" }: AnswerSettings): string {
  return serviceTier === "default" ? "standard" : serviceTier;
}
