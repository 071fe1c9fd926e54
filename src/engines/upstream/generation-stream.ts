import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { AttemptObserver, ObservedAttempt } from "../../core/generation-observer.ts";
import { shows } from "../../core/shows.ts";
import { internalError } from "../../apis/failures.ts";
import { Attempt } from "./attempt.ts";
import type { AttemptOptions } from "./attempt.ts";
import { isRetryable, isServersFault, waitBefore } from "./retry-policy.ts";
import type { FailedAttempt, RetryBudget } from "./retry-policy.ts";
import type { Target } from "./target.ts";
import type { TargetSet } from "./target-set.ts";

export type RefusedLimit = NonNullable<GenerationFailure["answerLimit"]>;

export interface GenerationPlan {
  readonly targets: TargetSet;
  readonly budget: RetryBudget;
  readonly retries: number;
  /** The models to try, in order, as the upstream calls them; more than one where there are fallbacks. */
  readonly models: readonly string[];
  /**
   * An attempt at a model of a target, with a reader of its own. `limit`: the highest limit on the answer's length that the model takes,
   * in tokens; null: none may be sent; undefined: not known. Throws, or rejects, where the request cannot be written for the target.
   */
  prepare(
    model: string,
    target: Target,
    fresh: boolean,
    limit?: number | null,
  ): AttemptOptions | Promise<AttemptOptions>;
  /** The `limit` of another attempt, after a refusal of the request's own limit; undefined: there is no use in one. */
  limitAfter(refused: RefusedLimit): number | null | undefined | Promise<number | null | undefined>;
  /** Follows an attempt that begins, where anybody does. */
  observe(attempt: ObservedAttempt): AttemptObserver | undefined;
  /** An attempt failed and another one follows. */
  retried(failure: GenerationFailure, model: string, target: Target): void;
  /** The answer is over, or given up. */
  closed(stream: GenerationStream, attempt: AttemptOptions | undefined): void;
}

/**
 * One generation: attempts, until one of them tells a first event; from then on that attempt and no other, so that no text is ever
 * sent twice.
 */
export class GenerationStream implements AsyncIterableIterator<readonly GenerationEvent[]> {
  readonly #plan: GenerationPlan;
  #attempt: Attempt | undefined;
  #options: AttemptOptions | undefined;
  /** Of the attempt that goes on. */
  #observer: AttemptObserver | undefined;
  /** The first event was sent. */
  #committed = false;
  #closed = false;
  #abandoned: GenerationEnd | undefined;
  #wake: (() => void) | undefined;

  constructor(plan: GenerationPlan) {
    this.#plan = plan;
    plan.budget.deposit();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly GenerationEvent[], undefined>> {
    if (this.#closed) return over;
    const batch = this.#committed && this.#attempt ? await this.#attempt.next() : await this.#first();
    const last = batch?.at(-1);
    if (batch === null || last?.type === "end") this.#close(last?.type === "end" ? last.end : { kind: "done" });
    return batch === null ? over : { done: false, value: batch };
  }

  return(): Promise<IteratorResult<readonly GenerationEvent[], undefined>> {
    this.abandon(clientGone);
    this.#close(clientGone);
    return Promise.resolve(over);
  }

  /** Stops the work; a waiting reader gets `end`. */
  abandon(end: GenerationEnd): void {
    if (this.#closed) return;
    this.#abandoned = end;
    this.#attempt?.abort(end);
    this.#wake?.();
  }

  #close(end: GenerationEnd): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#observer?.ended(end);
    this.#plan.closed(this, this.#options);
  }

  /** The first batch for the client: of the first attempt that begins to answer, or of the last one that fails. */
  async #first(): Promise<readonly GenerationEvent[] | null> {
    const { targets, models, prepare } = this.#plan;
    for (const [at, model] of models.entries()) {
      const tried = new Set<Target>();
      let limit: number | null | undefined;
      for (let attempt = 1; ; attempt++) {
        const target = targets.choose(tried);
        tried.add(target);
        let options: AttemptOptions;
        try {
          const prepared = prepare(model, target, false, limit);
          options = prepared instanceof Promise ? await prepared : prepared;
        } catch (error) {
          // The request is refused before anything is sent: there was no attempt to observe.
          return [{ type: "end", end: refusal(error) }];
        }
        if (this.#abandoned) return [{ type: "end", end: this.#abandoned }];
        const begun = performance.now();
        const observer = (this.#observer = this.#plan.observe({ url: target.url, model }));
        let batch = await this.#begin(options, observer?.headers);
        // No attempt was made yet: the connection was gone before it was used.
        if (this.#attempt?.neverArrived === true)
          batch = await this.#begin(await prepare(model, target, true, limit), observer?.headers);
        const end = batch && failedEnd(batch);
        if (!end || this.#abandoned) {
          if (!this.#abandoned) targets.succeeded(target);
          this.#committed = true;
          return batch;
        }
        const { failure } = end;
        if (isServersFault(failure)) targets.failed(target, failure.cause);
        else targets.succeeded(target);
        // Refused before anything was generated, so the next attempt costs neither load nor much time.
        if (failure.answerLimit && limit === undefined) {
          limit = await this.#plan.limitAfter(failure.answerLimit);
          if (limit !== undefined) {
            observer?.ended(end);
            this.#observer = undefined;
            this.#plan.retried(failure, model, target);
            tried.delete(target);
            attempt--;
            continue;
          }
        }
        const hasOther = targets.hasFresh(tried);
        const wait = this.#waitAfter({ end, number: attempt, tookMs: performance.now() - begun, hasOther });
        const isLastModel = at === models.length - 1;
        if (wait === null && (isLastModel || !mayFallBack(failure))) {
          this.#committed = true;
          return batch;
        }
        observer?.ended(end);
        this.#observer = undefined;
        this.#plan.retried(failure, model, target);
        if (wait === null) break;
        if (wait > 0) await this.#sleep(wait);
      }
    }
    return null;
  }

  /** `headers`: of the trace, sent in addition to the attempt's own. */
  async #begin(
    options: AttemptOptions,
    headers: AttemptObserver["headers"] | undefined,
  ): Promise<readonly GenerationEvent[] | null> {
    if (this.#abandoned) return [{ type: "end", end: this.#abandoned }];
    this.#options = headers ? { ...options, headers: { ...headers, ...options.headers } } : options;
    this.#attempt = new Attempt(this.#options);
    return this.#attempt.next();
  }

  /** Milliseconds until the next attempt at the same model; null: there is none. */
  #waitAfter(failed: FailedAttempt): number | null {
    const { retries, budget } = this.#plan;
    const wait = failed.number > retries ? null : waitBefore(failed, Math.random);
    return wait !== null && budget.withdraw() ? wait : null;
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = (): void => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

const clientGone: GenerationEnd = { kind: "client-gone" };

const over: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The failed end of a batch that shows nothing else; null when there is something to tell. */
function failedEnd(batch: readonly GenerationEvent[]): FailedAttempt["end"] | null {
  const last = batch.at(-1);
  if (last?.type !== "end" || !("failure" in last.end)) return null;
  return batch.some(shows) ? null : last.end;
}

/** The end of a request that cannot be written for its upstream, or of one whose preparation has failed. */
function refusal(error: unknown): GenerationEnd {
  if (error instanceof FailureError) return { kind: "rejected", failure: error.failure };
  return { kind: "engine-error", failure: internalError(error).failure };
}

/** Whether another model may succeed. A fallback does not help where the request itself is wrong. */
function mayFallBack(failure: GenerationFailure): boolean {
  return isRetryable(failure) || failure.status === 404 || failure.code === "model_not_found";
}
