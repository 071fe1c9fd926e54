import type { ModelInfo } from "../core/engine.ts";
import type { GenerationFailure } from "../core/events.ts";
import type { Profile } from "./profile.ts";
import type { RateLevels } from "./rate-limits.ts";

/** The keys, headers and errors of an API. */
export interface ApiErrorFormat {
  /** The client's key; "" without one. */
  keyIn(header: HeaderReader): string;
  /** Headers of every answer. `requestId`: as in the log; `processingMs`: until the head of the answer. */
  answerHeaders(requestId: string, processingMs: number): Record<string, string>;
  /** Headers with the rest of a key's rate limits. `now`: Unix time in milliseconds. */
  limitHeaders(levels: RateLevels, now: number): Record<string, string>;
  /** The API's own list of models. */
  readonly models?: ModelListFormat;
  /** The answer for a failure before anything was sent. */
  writeFailure(failure: GenerationFailure, profile: Profile, requestId: string): ErrorAnswer;
}

/** Writes an API's list of models. */
export interface ModelListFormat {
  /** Whether a request's headers ask for this API's list. */
  isRequested(header: HeaderReader): boolean;
  /** The body of `GET /v1/models`. */
  list(models: readonly ModelInfo[]): string;
  /** The body of `GET /v1/models/{id}`. */
  one(model: ModelInfo): string;
}

/** Returns a request header by its lower-case name. */
export type HeaderReader = (name: string) => string | undefined;

/** An HTTP error answer. The server adds `retry-after` and the failure's own headers. */
export interface ErrorAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}
