import type { ModelInfo } from "../core/engine.ts";
import type { GenerationFailure } from "../core/events.ts";
import type { Profile } from "./profile.ts";
import type { RateLevels } from "./rate-limits.ts";
import { requestId } from "./ids.ts";
import { writeErrorBody } from "./error-body.ts";
import type { ErrorAnswer } from "./error-body.ts";
import { openaiLimitHeaders } from "./rate-limits.ts";

/** The keys, headers and errors of an API. */
export interface ApiErrorFormat {
  /** The client's key; "" without one. `query` returns a member of the query; absent: there is none. */
  keyIn(header: HeaderReader, query?: HeaderReader): string;
  /** Returns an id for a request in the vendor's form. `now`: Unix time in milliseconds; `random`: uniform in [0, 1). */
  newRequestId(now: number, random: () => number): string;
  /** Headers of every answer. `requestId`: as in the log; `processingMs`: until the head of the answer. */
  answerHeaders(requestId: string, processingMs: number): Record<string, string>;
  /** Headers with the rest of a key's rate limits. `now`: Unix time in milliseconds. */
  limitHeaders(levels: RateLevels, now: number): Record<string, string>;
  /** The words for a request without a body, whose content type does not matter in this API; absent: as OpenAI. */
  readonly missingBody?: string;
  /** The API's own list of models. */
  readonly models?: ModelListFormat;
  /** The answer for a failure before anything was sent. `header`: those of the request; absent: none. */
  writeFailure(failure: GenerationFailure, profile: Profile, requestId: string, header?: HeaderReader): ErrorAnswer;
}

/** Writes an API's list of models. */
export interface ModelListFormat {
  /** Whether a request's headers, or its query, ask for this API's list. */
  isRequested(header: HeaderReader, query?: HeaderReader): boolean;
  /** The body of `GET /v1/models`. `queries` returns all values of a query parameter. */
  list(models: readonly ModelInfo[], queries?: (name: string) => readonly string[]): string;
  /** The body of `GET /v1/models/{id}`. */
  one(model: ModelInfo): string;
}

/** Returns a request header by its lower-case name, or a member of the query. */
export type HeaderReader = (name: string) => string | undefined;

/** OpenAI's keys (a Bearer token, a basic password from browsers, or `x-api-key` from some gateways), headers and error object. */
export const openaiErrorFormat: ApiErrorFormat = {
  keyIn: (header) => keyIn(header),
  newRequestId: (_now, random) => requestId(random),
  answerHeaders: (requestId, processingMs) => ({
    "x-request-id": requestId,
    "openai-processing-ms": String(processingMs),
    "openai-version": "2020-10-01",
  }),
  limitHeaders: openaiLimitHeaders,
  writeFailure: writeErrorBody,
};

/**
 * `Bearer KEY`, or HTTP's basic scheme with the key as the password, as OpenAI's own 401 offers for browsers; else `x-api-key`, or Azure's
 * `api-key`.
 */
export function keyIn(header: HeaderReader): string {
  return authorizedKey(header) || (header("x-api-key") ?? "").trim() || (header("api-key") ?? "").trim();
}

function authorizedKey(header: HeaderReader): string {
  const [scheme = "", value = ""] = (header("authorization") ?? "").trim().split(/\s+/, 2);
  if (/^bearer$/i.test(scheme)) return value;
  if (!/^basic$/i.test(scheme)) return "";
  try {
    const pair = atob(value);
    return pair.slice(pair.indexOf(":") + 1);
  } catch {
    return "";
  }
}

/** The authorization header for a server of OpenAI's dialect. */
export function bearer(key: string | undefined): Readonly<Record<string, string>> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
