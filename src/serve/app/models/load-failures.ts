import { ModelOpenError } from "../../../engines/llama/model-open-error.ts";
import type { ModelOpenReason } from "../../../engines/llama/model-open-error.ts";
import type { GenerationFailure } from "../../../wire/core/events.ts";
import { FailureError } from "../../../wire/core/failure.ts";

/*
 * Errors for requests whose model is not loaded. They are for clients: without paths, and without the names of other models unless the
 * server is only for its own machine.
 */

/** Other models, in an error about one. */
export interface OtherModels {
  readonly names: readonly string[];
  /** The client may learn their names; the log has them in any case. */
  readonly shown: boolean;
}

/** The model is loaded and unloaded manually only. */
export function notLoaded(model: string): FailureError {
  return refusal(
    model,
    "model_not_loaded",
    `The model '${model}' is not loaded, and is only loaded by hand: truewire models load ${model}`,
    60,
    notAgain,
  );
}

/** The last load failed; the next attempt is possible in `pauseMs` milliseconds. */
export function loadFailed(model: string, error: ModelOpenError, pauseMs: number): FailureError {
  const message = `The model '${model}' could not be loaded: ${sentences[error.reason]}.`;
  // The log has the cause in full, with the path.
  return refusal(model, "model_load_failed", message, pauseMs / 1000, { cause: error.message });
}

/** The model needs more memory than the limit for all models. */
export function tooLarge(model: string): FailureError {
  return refusal(
    model,
    "model_too_large",
    `The model '${model}' does not fit into the memory that this server may use.`,
    60,
    notAgain,
  );
}

/** Models that are never unloaded (`kept`) use the memory that the model needs. */
export function memoryPinned(model: string, kept: OtherModels): FailureError {
  const cure = `Unload one (truewire models unload ${kept.names[0] ?? "NAME"}), or raise the memory limit (--memory).`;
  const message = `There is not enough free memory for the model '${model}': models that stay loaded use it`;
  return refusal(model, "no_room", kept.shown ? `${message} (${kept.names.join(", ")}). ${cure}` : `${message}.`, 60, {
    ...notAgain,
    cause: `Models that stay loaded (keep, or load: manual): ${kept.names.join(", ")}. ${cure}`,
  });
}

/** The model would fit only if another one was unloaded, which the caller excludes. `loaded`: the names of the loaded models. */
export function noFreeMemory(model: string, loaded: readonly string[]): FailureError {
  return refusal(
    model,
    "no_room",
    `There is not enough free memory for the model '${model}' next to the models that are loaded.`,
    10,
    { cause: `${loaded.join(", ")} use the memory. Unload one: truewire models unload NAME` },
  );
}

/** The models that would have to be unloaded (`loaded`) were busy all the time. */
export function busyTooLong(model: string, waitedMs: number, loaded: OtherModels): FailureError {
  const seconds = Math.round(waitedMs / 1000);
  const who = `Loaded: ${loaded.names.join(", ")}.`;
  return refusal(
    model,
    "model_busy",
    `The model '${model}' is not loaded, and for ${seconds} seconds no other model could be unloaded for it.${loaded.shown ? ` ${who}` : ""} Please try again later.`,
    10,
    { cause: `${who} Their requests run longer than loadWait.` },
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

/** `x-should-retry` is read by OpenAI's and Anthropic's SDKs: without it, they would wait a minute, twice, for the same answer. */
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

/** Converts anything thrown while a model is opened to a `ModelOpenError`. */
export function openErrorOf(error: unknown): ModelOpenError {
  return error instanceof ModelOpenError
    ? error
    : new ModelOpenError("load-failed", error instanceof Error ? error.message : String(error), error);
}
