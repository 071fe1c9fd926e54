import type { FinishReason, GenerationFailure } from "../../core/events.ts";
import { errorObject } from "../error-body.ts";
import { openaiErrorFormat } from "../api-error-format.ts";
import type { Profile } from "../profile.ts";
import { invalidImageError } from "./schema.ts";
import type { ApiErrorFormat } from "../api-error-format.ts";
import type { ErrorAnswer } from "../error-body.ts";

interface ErrorForm {
  readonly write: (value: object) => string;
  /** The headers of a 401. */
  readonly unauthorized: { readonly headers?: Readonly<Record<string, string>> };
}

/** Errors are indented by two spaces (recordings of 2025-12 and 2026). Those of chat are indented by four if the gateway refuses. */
const forms: Readonly<Record<Profile["name"], ErrorForm>> = {
  lean: { write: (value) => JSON.stringify(value), unauthorized: {} },
  exact: {
    write: (value) => JSON.stringify(value, null, 2),
    unauthorized: { headers: { "www-authenticate": 'Bearer realm="OpenAI API"' } },
  },
};

/** The headers and error answers of the Responses API. */
export const responsesErrorFormat: ApiErrorFormat = {
  ...openaiErrorFormat,
  writeFailure(failure: GenerationFailure, profile: Profile): ErrorAnswer {
    const { write, unauthorized } = forms[profile.name];
    const own = asResponsesFailure(failure, profile);
    return {
      status: own.status,
      contentType: "application/json",
      body: write({ error: errorObject(own) }),
      ...(own.status === 401 && unauthorized),
    };
  },
};

/** A model that does not exist is a 400 that names the parameter, and a prompt that is too long an error of the input. */
function asResponsesFailure(failure: GenerationFailure, { judgesAsVendor }: Profile): GenerationFailure {
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
  const { why } = failure.image ?? {};
  if (judgesAsVendor && (why === "format" || why === "damaged")) return { ...failure, ...invalidImageError };
  return failure;
}

/**
 * Returns the `code` of a response that failed. Clients act on three of them: Codex does not repeat a request after
 * `context_length_exceeded` or `insufficient_quota`, and waits after `rate_limit_exceeded`. Source: the specification's
 * ResponseErrorCode; Codex CLI 0.169.
 */
export function failureCode({ kind, code }: GenerationFailure): string {
  if (typeof code === "string" && code !== "") return code;
  switch (kind) {
    case "context-overflow":
      return "context_length_exceeded";
    case "rate-limited":
    case "overloaded":
      return "rate_limit_exceeded";
    case "invalid-request":
      return "invalid_prompt";
    default:
      return "server_error";
  }
}

/** Returns why a response is incomplete, or `undefined` if it is complete. */
export function incompleteReason(reason: FinishReason): "max_output_tokens" | "content_filter" | undefined {
  switch (reason) {
    case "length":
      return "max_output_tokens";
    case "content-filter":
      return "content_filter";
    case "stop":
    case "tool-calls":
    case "function-call":
      return undefined;
  }
}
