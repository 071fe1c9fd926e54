import type { GenerationFailure } from "../../generation/event.ts";

/**
 * A prompt that does not fit, in OpenAI's words. `promptTokens` may be a lower bound (`atLeast`): what is certainly too long is refused
 * without being counted.
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
    message: `This model's maximum context length is ${contextSize} tokens. However, your ${param} resulted in ${count} tokens. Please reduce the length of the ${param}.`,
    status: 400,
    param,
    code: "context_length_exceeded",
    tokens: { asked: promptTokens, most: contextSize },
  };
}
