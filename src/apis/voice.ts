import type { ModelInfo } from "../core/engine.ts";
import type { GenerationFailure } from "../core/events.ts";
import type { Profile } from "./profile.ts";
import type { RateLevels } from "./rate-limits.ts";

/** How an API speaks beside its answers: how a key arrives, which headers every answer has, how a failure is told. */
export interface Voice {
  /** The key that the client sent; "" for none. */
  keyIn(header: HeaderReader): string;
  /** Headers of every answer. `requestId` as in the log; `processingMs`: until the answer's head. */
  answerHeaders(requestId: string, processingMs: number): Record<string, string>;
  /** Headers that tell what is left of a key's rates. `now`: Unix time in milliseconds. */
  limitHeaders(levels: RateLevels, now: number): Record<string, string>;
  /** Its own list of models, where it has one. */
  readonly models?: ModelLister;
  /** A failure that is told before anything else was sent. */
  writeFailure(failure: GenerationFailure, profile: Profile, requestId: string): ErrorAnswer;
}

/** How an API tells which models there are. */
export interface ModelLister {
  /** Whether a request's headers say that this API's list is meant. */
  isMeant(header: HeaderReader): boolean;
  /** The body of `GET /v1/models`. */
  list(models: readonly ModelInfo[]): string;
  /** The body of `GET /v1/models/{id}`. */
  one(model: ModelInfo): string;
}

/** A request header by its lower-case name; undefined where it is absent. */
export type HeaderReader = (name: string) => string | undefined;

/** An HTTP error answer; `retry-after` and what the failure itself brings stand beside it. */
export interface ErrorAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}
