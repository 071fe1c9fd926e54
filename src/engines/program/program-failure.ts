import { isObject } from "../../wire/core/json.ts";
import type { JsonObject } from "../../wire/core/json.ts";
import type { EndEvent, GenerationFailure } from "../../wire/core/events.ts";
import type { FailureError } from "../../wire/core/failure.ts";
import { kindOfStatus, loggedError } from "../../wire/core/failure.ts";

export interface FailureOptions {
  /** The id in the answer's headers and in the log. */
  readonly requestId: string;
  /** Clients see the message of any exception. */
  readonly showErrors: boolean;
}

/**
 * The end of a generation whose program has thrown. A `RequestError`, or an error of the AI SDK (which has the provider's `statusCode`),
 * keeps its status and message. Any other exception becomes a 500 that names the request id, and the header `x-should-retry: false`, which
 * OpenAI's and Anthropic's SDKs obey: a retry would fail again. `cause` says for the log where the exception was thrown.
 */
export function failureEnd(thrown: unknown, { requestId, showErrors }: FailureOptions): EndEvent {
  if (isFailureError(thrown)) return { type: "end", end: { kind: "rejected", failure: thrown.failure } };
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (named(thrown, "RequestError")) {
    const status = statusOf(thrown.status) ?? 400;
    const failure: GenerationFailure = {
      kind: thrown.code === "context_length_exceeded" ? "context-overflow" : kindOfStatus(status),
      message,
      isForeign: true,
      status,
      param: text(thrown.param),
      code: text(thrown.code),
      cause: loggedError(thrown),
    };
    return { type: "end", end: { kind: "rejected", failure } };
  }
  const upstream = isObject(thrown) ? statusOf(thrown.statusCode) : undefined;
  if (upstream !== undefined && isObject(thrown)) {
    const failure: GenerationFailure = {
      kind: kindOfStatus(upstream),
      message,
      isForeign: true,
      status: upstream,
      ...(thrown.isRetryable === false && notAgain),
      cause: loggedError(thrown),
    };
    return { type: "end", end: { kind: "upstream-error", failure } };
  }
  const failure: GenerationFailure = {
    kind: "internal",
    message: showErrors
      ? `The program failed: ${message}`
      : `The program failed. The server's log says why, under the request id ${requestId}.`,
    ...(showErrors && { isForeign: true }),
    status: 500,
    ...notAgain,
    cause: loggedError(thrown),
  };
  return { type: "end", end: { kind: "engine-error", failure } };
}

const notAgain = { headers: { "x-should-retry": "false" } } as const;

/** Also one of another copy of the package: the program imports its own. */
function isFailureError(thrown: unknown): thrown is FailureError {
  return named(thrown, "FailureError") && isObject(thrown.failure);
}

function named(thrown: unknown, name: string): thrown is JsonObject {
  return isObject(thrown) && thrown.name === name;
}

function statusOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 400 && value <= 599 ? value : undefined;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
