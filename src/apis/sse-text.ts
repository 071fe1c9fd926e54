import type { GenerationFailure } from "../core/events.ts";
import { errorObject } from "./error-body.ts";

/** The end of every stream that reaches a client. */
export const doneText = "data: [DONE]\n\n";

/** A comment: no event for any client, a sign of life for proxies. */
export const keepAliveText = ": keep-alive\n\n";

/** An error inside a stream, as OpenAI's SDKs expect it, and the end of the stream. No finish chunk is invented. */
export function errorEnd(failure: GenerationFailure): string {
  return `data: ${JSON.stringify({ error: errorObject(failure) })}\n\n${doneText}`;
}
