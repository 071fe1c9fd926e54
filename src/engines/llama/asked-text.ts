import { isLong, jsonInPieces } from "../../core/json-in-pieces.ts";
import type { GenerationFailure } from "../../core/events.ts";
import type { AskedOfModel } from "./protocol.ts";

/** An `AskedOfModel` as JSON; a long one is written while it is sent. */
export type AskedText = string | Generator<string, void, undefined>;

/** In characters: so many are written and sent at once. */
const pieceSize = 64 * 1024;

/** null: it is nested too deeply. */
export function askedText(request: AskedOfModel): AskedText | null {
  const { prompt, n, sampling, limits, logprobs, tools, toolChoice, parallelToolCalls, output, reasoning } = request;
  const { prediction, wantsRunningUsage, wantsProgress, wantsTokenIds, promptLogprobs, tokenizing, inspected } =
    request;
  const asked: { readonly [Name in keyof AskedOfModel]: AskedOfModel[Name] | undefined } = {
    prompt,
    n,
    sampling,
    limits,
    logprobs,
    tools,
    toolChoice,
    parallelToolCalls,
    output,
    reasoning,
    prediction,
    wantsRunningUsage,
    wantsProgress,
    wantsTokenIds,
    promptLogprobs,
    tokenizing,
    inspected,
  };
  try {
    return isLong(asked, 4 * pieceSize) ? jsonInPieces(asked, pieceSize) : JSON.stringify(asked);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

export const nestedTooDeeply: GenerationFailure = {
  kind: "invalid-request",
  message: "The request is nested too deeply.",
  status: 400,
  param: null,
  code: "invalid_value",
};
