import type { GenerationFailure } from "../../generation/event.ts";

/** OpenAI's answer to a prompt that does not fit, in its words. */
export function contextLengthExceeded(
  contextSize: number,
  promptTokens: string,
  param: "messages" | "prompt",
): GenerationFailure {
  const what = param === "messages" ? "messages" : "prompt";
  return {
    message: `This model's maximum context length is ${contextSize} tokens. However, your ${what} resulted in ${promptTokens} tokens. Please reduce the length of the ${what}.`,
    status: 400,
    kind: "invalid-request",
    param,
    code: "context_length_exceeded",
  };
}
