import type { GenerationFailure } from "../../wire/core/events.ts";
import { isLong, jsonChunks } from "../../wire/core/json-chunks.ts";
import type { ModelRequest } from "./protocol.ts";

/** An `AskedOfModel` as JSON; a long one is a generator of chunks, which is written while it is sent. */
export type RequestText = string | Generator<string, void, undefined>;

/** Size of a chunk in characters. */
const chunkSize = 64 * 1024;

/** All members of an `AskedOfModel`. */
const members: Readonly<Record<keyof ModelRequest, true>> = {
  tier: true,
  prompt: true,
  n: true,
  sampling: true,
  limits: true,
  logprobs: true,
  tools: true,
  toolChoice: true,
  parallelToolCalls: true,
  output: true,
  reasoning: true,
  prediction: true,
  wantsRunningUsage: true,
  wantsProgress: true,
  wantsTokenIds: true,
  promptLogprobs: true,
  tokenizing: true,
  inspected: true,
};

/** Writes the members that a model's process needs. Throws `RangeError` if the request is nested too deeply. */
export function requestText(request: ModelRequest): RequestText {
  const names = Object.keys(members) as (keyof ModelRequest)[];
  const picked = Object.fromEntries(names.map((name) => [name, request[name]]));
  return isLong(picked, 4 * chunkSize) ? jsonChunks(picked, chunkSize) : JSON.stringify(picked);
}

/** The failure for a request that could not be written, because of `error`. */
export function unwritable(error: unknown): GenerationFailure {
  if (!(error instanceof RangeError))
    return { kind: "internal", status: 500, message: "The request could not be sent to the model.", cause: error };
  return {
    kind: "invalid-request",
    message: "The request is nested too deeply.",
    status: 400,
    param: null,
    code: "invalid_value",
  };
}
