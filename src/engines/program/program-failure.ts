import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import type { EndEvent, GenerationFailure } from "../../core/events.ts";
import { FailureError, kindOfStatus } from "../../core/failure.ts";

export interface FailureOptions {
  /** As in the answer's headers and the log: it leads from the one to the other. */
  readonly requestId: string;
  /** Clients are told the words of any exception. */
  readonly showErrors: boolean;
}

/**
 * What a client is told of an exception in a program: its own status and words where it is a `RequestError` (or an error of the AI SDK,
 * which carries the provider's `statusCode`), else 500 and where to look. The exception itself stays in `cause`, for the log. A defect
 * will be there the next time, too, so clients are told not to try again: `x-should-retry` is the word of OpenAI's and Anthropic's SDKs.
 */
export function failureEnd(thrown: unknown, { requestId, showErrors }: FailureOptions): EndEvent {
  if (thrown instanceof FailureError) return { type: "end", end: { kind: "rejected", failure: thrown.failure } };
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (named(thrown, "RequestError")) {
    const status = statusOf(thrown.status) ?? 400;
    const failure: GenerationFailure = {
      kind: thrown.code === "context_length_exceeded" ? "context-overflow" : kindOfStatus(status),
      message,
      status,
      param: text(thrown.param),
      code: text(thrown.code),
      cause: thrown,
    };
    return { type: "end", end: { kind: "rejected", failure } };
  }
  const upstream = isObject(thrown) ? statusOf(thrown.statusCode) : undefined;
  if (upstream !== undefined && isObject(thrown)) {
    const failure: GenerationFailure = {
      kind: kindOfStatus(upstream),
      message,
      status: upstream,
      // The AI SDK's own judgement.
      ...(thrown.isRetryable === false && notAgain),
      cause: thrown,
    };
    return { type: "end", end: { kind: "upstream-error", failure } };
  }
  const failure: GenerationFailure = {
    kind: "internal",
    message: showErrors
      ? `The program failed: ${message}`
      : `The program failed. The server's log says why, under the request id ${requestId}.`,
    status: 500,
    ...notAgain,
    cause: thrown,
  };
  return { type: "end", end: { kind: "engine-error", failure } };
}

const notAgain = { headers: { "x-should-retry": "false" } } as const;

function named(thrown: unknown, name: string): thrown is JsonObject {
  return isObject(thrown) && thrown.name === name;
}

function statusOf(value: unknown): number | undefined {
  return typeof value === "number" && value >= 400 && value <= 599 ? value : undefined;
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
