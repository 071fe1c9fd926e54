import type { ModelOpenError, ModelOpenReason } from "../../engines/llama/model-open-error.ts";
import type { GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";

/** Why a request for a model that is not loaded is refused, in words for its client: without paths, and without other models' names. */

/** It is loaded and unloaded by hand. */
export function notLoaded(model: string): FailureError {
  return refusal(
    model,
    "model_not_loaded",
    `The model '${model}' is not loaded, and is only loaded by hand: truewire models load ${model}`,
    60,
    notAgain,
  );
}

/** Its last load failed; it is not tried again before so many milliseconds. */
export function loadFailed(model: string, error: ModelOpenError, pauseMs: number): FailureError {
  const message = `The model '${model}' could not be loaded: ${sentences[error.reason]}.`;
  // The log has the cause in full, with the path.
  return refusal(model, "model_load_failed", message, pauseMs / 1000, { cause: error.message });
}

/** It needs more memory than there is for models. */
export function tooLarge(model: string): FailureError {
  return refusal(
    model,
    "model_too_large",
    `The model '${model}' does not fit into the memory that this server may use.`,
    60,
    notAgain,
  );
}

/** What stays loaded takes its room. */
export function roomTaken(model: string): FailureError {
  return refusal(
    model,
    "no_room",
    `There is no room for the model '${model}': models that stay loaded take it.`,
    60,
    notAgain,
  );
}

/** It would fit, if another model went, which whoever asks does not want. */
export function noRoom(model: string): FailureError {
  return refusal(model, "no_room", `There is no room for the model '${model}' beside those that are loaded.`, 10);
}

/** Those that would have to make room were busy all the time. */
export function busyTooLong(model: string, waitedMs: number): FailureError {
  return refusal(
    model,
    "model_busy",
    `The model '${model}' is not loaded, and for ${Math.round(waitedMs / 1000)} seconds no other model could make room for it. Please try again later.`,
    10,
  );
}

function refusal(
  model: string,
  code: string,
  message: string,
  retryAfterSeconds: number,
  more: Pick<GenerationFailure, "headers" | "cause"> = {},
): FailureError {
  return new FailureError({
    kind: "unavailable",
    message,
    status: 503,
    param: null,
    code,
    model,
    retryAfterSeconds,
    ...more,
  });
}

/** `x-should-retry` is the word of OpenAI's and Anthropic's SDKs: they would wait a minute, twice, for the same answer. */
const notAgain = { headers: { "x-should-retry": "false" } };

const sentences: Readonly<Record<ModelOpenReason, string>> = {
  "no-such-file": "its file is missing or cannot be read",
  "not-a-gguf": "its file is not a GGUF file",
  "unknown-architecture": "its architecture is not known here",
  "not-enough-memory": "there is not enough memory",
  "library-missing": "the library that runs local models is not installed",
  "download-failed": "it could not be downloaded",
  "load-failed": "its file cannot be loaded",
};
