import type { GenerationFailure } from "../../wire/core/events.ts";

/** Coding agents send prompts of 3,114 to 41,404 tokens (measured in 2026), so a smaller context is too small for them. */
const agentTokens = 4096;

const hint =
  " Coding agents need a model with a context of 32768 tokens or more: truewire serve hf:owner/repo --context-size 32768.";

/**
 * The failure for a prompt that exceeds the context, with OpenAI's message. With `atLeast`, `promptTokens` is a lower bound: a prompt that
 * is certainly too long is not tokenized.
 */
export function contextLengthExceeded(
  contextSize: number,
  promptTokens: number,
  param: "messages" | "prompt",
  { atLeast = false }: { readonly atLeast?: boolean } = {},
): GenerationFailure {
  const count = `${atLeast ? "more than " : ""}${promptTokens}`;
  return {
    kind: "context-overflow",
    message: `This model's maximum context length is ${contextSize} tokens. However, your ${param} resulted in ${count} tokens. Please reduce the length of the ${param}.${contextSize < agentTokens && promptTokens > 3000 ? hint : ""}`,
    status: 400,
    param,
    code: "context_length_exceeded",
    tokens: { asked: promptTokens, most: contextSize },
  };
}
