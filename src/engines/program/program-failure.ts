import { isObject } from "../../generation/json.ts";
import type { JsonObject } from "../../generation/json.ts";
import type { EndEvent, GenerationFailure } from "../../generation/event.ts";
import { FailureError, kindOfStatus } from "../../generation/failure.ts";

/**
 * What a client is told of an exception in a program: its own status where it is a `RequestError` (or an error of the AI SDK, which
 * carries the provider's `statusCode`), else 500. The stack stays in `cause`, for the log.
 */
export function failureEnd(thrown: unknown): EndEvent {
  if (thrown instanceof FailureError) return { type: "end", end: { kind: "rejected", failure: thrown.failure } };
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  if (named(thrown, "RequestError")) {
    const status = statusOf(thrown.status) ?? 400;
    const failure: GenerationFailure = {
      kind: kindOfStatus(status),
      message,
      status,
      param: text(thrown.param),
      code: text(thrown.code),
      cause: thrown,
    };
    return { type: "end", end: { kind: "rejected", failure } };
  }
  const upstream = isObject(thrown) ? statusOf(thrown.statusCode) : undefined;
  if (upstream !== undefined) {
    const failure = { kind: kindOfStatus(upstream), message, status: upstream, cause: thrown };
    return { type: "end", end: { kind: "upstream-error", failure } };
  }
  const failure: GenerationFailure = {
    kind: "internal",
    message: `The program failed: ${message}`,
    status: 500,
    cause: thrown,
  };
  return { type: "end", end: { kind: "engine-error", failure } };
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
