import { keyIn as bearerIn } from "../openai-voice.ts";
import type { Voice } from "../voice.ts";
import { anthropicLimitHeaders } from "./limit-headers.ts";
import { anthropicModels } from "./model-list.ts";
import { anthropicError, errorObject } from "./error-object.ts";

/** Anthropic's: the key in `x-api-key` or as a Bearer token, `request-id`, the error object. */
export const anthropicVoice: Voice = {
  keyIn: (header) => header("x-api-key")?.trim() || bearerIn(header),
  answerHeaders: (requestId) => ({ "request-id": requestId, "x-request-id": requestId }),
  limitHeaders: anthropicLimitHeaders,
  models: anthropicModels,
  writeFailure(failure, _profile, requestId) {
    const { status } = anthropicError(failure);
    return {
      status,
      contentType: "application/json",
      body: JSON.stringify(errorObject(failure, requestId)),
      // Clients of Anthropic's ask again where it says so, whatever the status.
      headers: { "x-should-retry": String(status === 429 || (status >= 500 && status !== 501)) },
    };
  },
};
