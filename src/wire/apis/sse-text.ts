import type { GenerationFailure } from "../core/events.ts";
import { errorObject } from "./error-body.ts";

/** The end of every stream that reaches a client. */
export const doneText = "data: [DONE]\n\n";

/** A comment, which clients ignore and which keeps the connection open at proxies. */
export const keepAliveText = ": keep-alive\n\n";

/** An error within a stream, in the form that OpenAI's SDKs expect, and the end of the stream. There is no finish chunk. */
export function errorEnd(failure: GenerationFailure): string {
  return `data: ${JSON.stringify({ error: errorObject(failure) })}\n\n${doneText}`;
}
