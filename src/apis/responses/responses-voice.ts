import type { GenerationFailure } from "../../core/events.ts";
import { errorObject } from "../error-body.ts";
import { openaiVoice } from "../openai-voice.ts";
import type { Profile } from "../profile.ts";
import type { ErrorAnswer, Voice } from "../voice.ts";

interface ErrorForm {
  readonly write: (value: object) => string;
  /** Headers of a 401. */
  readonly unauthorized: { readonly headers?: Readonly<Record<string, string>> };
}

/**
 * Errors come with two spaces whatever refuses (recordings of 2025-12 and 2026; chat's come with four from the gateway).
 */
const forms: Readonly<Record<Profile["name"], ErrorForm>> = {
  lean: { write: (value) => JSON.stringify(value), unauthorized: {} },
  exact: {
    write: (value) => JSON.stringify(value, null, 2),
    unauthorized: { headers: { "www-authenticate": 'Bearer realm="OpenAI API"' } },
  },
};

/** How Responses tells failures: in OpenAI's object. */
export const responsesVoice: Voice = {
  ...openaiVoice,
  writeFailure(failure: GenerationFailure, profile: Profile): ErrorAnswer {
    const { write, unauthorized } = forms[profile.name];
    const told = inItsWords(failure, profile);
    return {
      status: told.status,
      contentType: "application/json",
      body: write({ error: errorObject(told) }),
      ...(told.status === 401 && unauthorized),
    };
  },
};

/** A model that does not exist is a 400 that names the parameter, and a prompt that is too long an error of the input. */
function inItsWords(failure: GenerationFailure, { judgesAsVendor }: Profile): GenerationFailure {
  if (failure.kind === "not-found" && failure.model !== undefined) {
    const message = judgesAsVendor ? `The requested model '${failure.model}' does not exist.` : failure.message;
    return { ...failure, message, status: 400, param: "model", code: "model_not_found" };
  }
  if (failure.kind === "context-overflow") {
    const message = judgesAsVendor
      ? "Your input exceeds the context window of this model. Please adjust your input and try again."
      : failure.message;
    return { ...failure, message, param: "input", code: "context_length_exceeded" };
  }
  return failure;
}
