import type { GenerationFailure } from "../../generation/event.ts";
import { errorObject } from "../error-body.ts";
import { openaiVoice } from "../openai-voice.ts";
import type { Profile } from "../profile.ts";
import type { ErrorAnswer, Voice } from "../voice.ts";

/**
 * How Responses tells failures: in OpenAI's object, with two spaces whatever refuses (recordings of 2025-12 and 2026; chat's come with
 * four from the gateway).
 */
export const responsesVoice: Voice = {
  ...openaiVoice,
  writeFailure(failure: GenerationFailure, profile: Profile): ErrorAnswer {
    const isExact = profile.name === "exact";
    const told = inItsWords(failure, isExact);
    const value = { error: errorObject(told) };
    return {
      status: told.status,
      contentType: "application/json",
      body: isExact ? JSON.stringify(value, null, 2) : JSON.stringify(value),
      ...(isExact && told.status === 401 && { headers: { "www-authenticate": 'Bearer realm="OpenAI API"' } }),
    };
  },
};

/** A model that does not exist is a 400 that names the parameter, and a prompt that is too long an error of the input. */
function inItsWords(failure: GenerationFailure, isExact: boolean): GenerationFailure {
  if (failure.kind === "not-found" && failure.model !== undefined) {
    const message = isExact ? `The requested model '${failure.model}' does not exist.` : failure.message;
    return { ...failure, message, status: 400, param: "model", code: "model_not_found" };
  }
  if (failure.kind === "context-overflow") {
    const message = isExact
      ? "Your input exceeds the context window of this model. Please adjust your input and try again."
      : failure.message;
    return { ...failure, message, param: "input", code: "context_length_exceeded" };
  }
  return failure;
}
