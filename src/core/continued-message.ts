import { invalidRequest } from "./failure.ts";
import type { Message } from "./message.ts";
import type { TemplateOptions } from "./request.ts";

/**
 * Whether a request may continue the last message (`continue_final_message`, as vLLM and transformers have it): no generation prompt
 * is added, nothing else is appended to the prompt, and the last message is the assistant's. Throws `FailureError` if it may not.
 */
export function checkContinuation(messages: readonly Message[], options: TemplateOptions): void {
  if (options.continueFinalMessage !== true) return;
  if (options.addGenerationPrompt !== false) {
    throw invalidRequest(
      "'continue_final_message' needs 'add_generation_prompt' to be false.",
      "continue_final_message",
    );
  }
  if (options.responsePrefix !== undefined) {
    throw invalidRequest("'continue_final_message' and 'response_prefix' exclude each other.", "response_prefix");
  }
  const last = messages.at(-1);
  if (last?.role === "assistant") return;
  const path = last?.path ?? `messages[${messages.length - 1}]`;
  throw invalidRequest("'continue_final_message' needs a last message from the assistant.", `${path}.role`);
}
