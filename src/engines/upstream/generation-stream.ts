import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../wire/core/events.ts";
import type { RequestTurns } from "./request-turns.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { AttemptObserver, ObservedAttempt } from "../../wire/core/generation-observer.ts";
import type { Placed } from "../../wire/core/open-list.ts";
import { isVisible } from "../../wire/core/events.ts";
import { internalError } from "../../wire/apis/failures.ts";
import { Attempt } from "./attempt.ts";
import type { AttemptOptions } from "./attempt.ts";
import type { TargetSet, UpstreamTarget } from "./targets.ts";
import { isOutOfFiles, isWorthRepeating } from "./transport-failure.ts";
import { random } from "../../wire/random/random.ts";

export type RefusedLimit = NonNullable<GenerationFailure["answerLimit"]>;

export interface GenerationPlan {
  readonly targets: TargetSet;
  /** The key of the conversation, if requests are balanced by it. */
  readonly conversation?: string | undefined;
  /** The earlier turns of the conversation. */
  readonly turns: RequestTurns;
  readonly budget: RetryBudget;
  /** See `Admission`. */
  enter(admitted: () => void): (() => void) | GenerationFailure;
  readonly retries: number;
  /** By the upstream's name. */
  readonly model: string;
  /**
   * Prepares an attempt at a model of a target. `limit`: the highest limit on the answer's length that the model takes, in tokens; null:
   * none may be sent; undefined: not known. `signal` aborts when the generation is abandoned. Throws or rejects if the request cannot be written
   * for the target.
   */
  prepare(
    model: string,
    target: UpstreamTarget,
    fresh: boolean,
    limit: number | null | undefined,
    signal: () => AbortSignal,
  ): AttemptOptions | Promise<AttemptOptions>;
  /** The `limit` of a further attempt, after a refusal of the request's own limit; undefined: a further attempt would fail, too. */
  limitAfter(refused: RefusedLimit): number | null | undefined | Promise<number | null | undefined>;
  /**
   * Called when an attempt was refused. Returns whether the refusal taught something about the server: then the request is prepared again,
   * and sent again to the same target if that changes its body. "replace": the caller replaces this generation by others.
   */
  learn(failure: GenerationFailure, refused: AttemptOptions, model: string): boolean | "replace";
  /** Called when a target accepted a request: what its last refusal taught holds for others. */
  confirmLessons(target: UpstreamTarget, model: string): void;
  /** Called when an attempt begins. */
  observe(attempt: ObservedAttempt): AttemptObserver | undefined;
  /** Called when an attempt failed and another one follows. */
  retried(failure: GenerationFailure, model: string, target: UpstreamTarget): void;
  /** Called with each batch of the answer. */
  read(events: readonly GenerationEvent[]): void;
  /** Called when the answer is complete or abandoned. */
  closed(stream: GenerationStream, attempt: AttemptOptions | undefined, end: GenerationEnd): void;
}

/** One generation: attempts, until one of them emits an event. From then on there is no other attempt, so that no text is sent twice. */
export class GenerationStream implements AsyncIterableIterator<readonly GenerationEvent[]>, Placed {
  place = -1;
  readonly #plan: GenerationPlan;
  #attempt: Attempt | undefined;
  #options: AttemptOptions | undefined;
  /** Observes the current attempt. */
  #observer: AttemptObserver | undefined;
  /** The first event was sent. */
  #committed = false;
  #closed = false;
  #abandoned: GenerationEnd | undefined;
  #wake: (() => void) | undefined;
  /** Aborts when the generation is abandoned. Few requests need it. */
  #abandoning: AbortController | undefined;
  readonly #signal = (): AbortSignal => {
    this.#abandoning ??= new AbortController();
    if (this.#abandoned) this.#abandoning.abort();
    return this.#abandoning.signal;
  };
  /** Admits a waiting request. */
  #leave: (() => void) | undefined;

  constructor(plan: GenerationPlan) {
    this.#plan = plan;
    plan.budget.deposit();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<readonly GenerationEvent[], undefined>> {
    if (this.#closed) return over;
    let batch: readonly GenerationEvent[] | null;
    // An iterator of a generation never rejects: what goes wrong in between is its end, which the observers see.
    try {
      if (this.#committed && this.#attempt) batch = await this.#attempt.next();
      else {
        batch = await this.#first();
        if (this.#options) this.#options.body = "";
      }
    } catch (error) {
      batch = [{ type: "end", end: this.#abandoned ?? refusal(error) }];
    }
    if (batch === null) {
      this.#close({ kind: "done" });
      return over;
    }
    this.#read(batch);
    return { done: false, value: batch };
  }

  /** See `GenerationIterator`. */
  follow(take: (batch: readonly GenerationEvent[]) => boolean): Promise<void> {
    if (this.#closed || !this.#committed || !this.#attempt) return Promise.resolve();
    return this.#attempt.follow((batch) => {
      this.#read(batch);
      return take(batch);
    });
  }

  #read(batch: readonly GenerationEvent[]): void {
    this.#plan.read(batch);
    const last = batch.at(-1);
    if (last?.type === "end") this.#close(last.end);
  }

  return(): Promise<IteratorResult<readonly GenerationEvent[], undefined>> {
    this.abandon(clientGone);
    this.#close(clientGone);
    return Promise.resolve(over);
  }

  /** Stops the generation. A waiting `next` gets `end`. */
  abandon(end: GenerationEnd): void {
    if (this.#closed) return;
    this.#abandoned = end;
    this.#attempt?.abort(end);
    this.#abandoning?.abort();
    this.#wake?.();
  }

  #close(end: GenerationEnd): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#leave?.();
    this.#observer?.ended(end);
    this.#plan.closed(this, this.#options, end);
  }

  /** The first batch for the client: that of the first attempt that succeeds, or of the last one that fails. */
  async #first(): Promise<readonly GenerationEvent[] | null> {
    const { targets, conversation, turns, model, prepare } = this.#plan;
    const recalling = turns.recall();
    if (recalling) await this.#unlessAbandoned(recalling);
    if (this.#abandoned) return [{ type: "end", end: this.#abandoned }];
    const entering = this.#enter();
    const refused = entering instanceof Promise ? await entering : entering;
    if (refused) return [{ type: "end", end: refused }];
    const tried = new Set<UpstreamTarget>();
    let limit: number | null | undefined;
    /** The last refusal that taught something, with the body that was refused. */
    let lesson: Lesson | undefined;
    /** The target that has taught something: others know nothing of it. */
    let taught: UpstreamTarget | undefined;
    let lessons = 0;
    for (let attempt = 1; ; attempt++) {
      const target: UpstreamTarget = taught ?? targets.choose(tried, conversation, turns.latestSource);
      taught = undefined;
      tried.add(target);
      let options: AttemptOptions;
      try {
        const prepared = prepare(model, target, false, limit, this.#signal);
        const ready = prepared instanceof Promise ? await this.#unlessAbandoned(prepared) : prepared;
        if (this.#abandoned || !ready) return [{ type: "end", end: this.#abandoned ?? clientGone }];
        options = ready;
      } catch (error) {
        // The request is refused before it is sent: there is no attempt to observe.
        return [{ type: "end", end: refusal(error) }];
      }
      if (lesson?.target === target && lesson.body === options.body) {
        this.#committed = true;
        return lesson.batch;
      }
      const begun = performance.now();
      const observer = (this.#observer = this.#plan.observe({ url: target.url, model }));
      let batch = await this.#begin(options, observer?.headers);
      // The connection was closed before the request arrived: this was no attempt.
      if (this.#attempt?.neverArrived === true) {
        const again = await this.#unlessAbandoned(Promise.resolve(prepare(model, target, true, limit, this.#signal)));
        if (this.#abandoned || !again) return [{ type: "end", end: this.#abandoned ?? clientGone }];
        batch = await this.#begin(again, observer?.headers);
      }
      const end = batch && failedEnd(batch);
      if (!end || this.#abandoned) {
        if (!this.#abandoned) targets.succeeded(target);
        if (!end) this.#plan.confirmLessons(target, model);
        this.#committed = true;
        return batch;
      }
      const { failure } = end;
      const learned = lessons < maxLessons && this.#plan.learn(failure, options, model);
      if (learned === "replace") {
        targets.succeeded(target);
        this.#committed = true;
        return batch;
      }
      if (learned) {
        lessons++;
        lesson = { batch, body: options.body, target };
        taught = target;
        targets.succeeded(target);
        this.#failed(end, model, target);
        attempt--;
        continue;
      }
      if (isServersFault(failure)) targets.failed(target, failure);
      else targets.succeeded(target);
      // A refusal costs neither load nor time, so the next attempt does not count as a retry.
      if (failure.answerLimit && limit === undefined) {
        const next = this.#plan.limitAfter(failure.answerLimit);
        limit = next instanceof Promise ? await this.#unlessAbandoned(next) : next;
        if (this.#abandoned) return [{ type: "end", end: this.#abandoned }];
        if (limit !== undefined) {
          this.#failed(end, model, target);
          tried.delete(target);
          attempt--;
          continue;
        }
      }
      const hasOther = targets.hasFresh(tried);
      const wait = this.#waitAfter({ end, number: attempt, tookMs: performance.now() - begun, hasOther });
      if (wait === null) {
        this.#committed = true;
        return batch;
      }
      this.#failed(end, model, target);
      if (wait > 0) await this.#sleep(wait);
    }
  }

  /** An attempt failed, and another one follows. */
  #failed(end: FailedAttempt["end"], model: string, target: UpstreamTarget): void {
    this.#observer?.ended(end);
    this.#observer = undefined;
    this.#plan.retried(end.failure, model, target);
  }

  /** Resolves with the result, or with undefined as soon as the generation is abandoned. */
  #unlessAbandoned<T>(result: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#wake = () => resolve(undefined);
      result.then(resolve, reject);
    });
  }

  /** Waits until the request may be sent. Returns the end of one that may not. */
  #enter(): GenerationEnd | null | Promise<GenerationEnd | null> {
    let isAdmitted = false;
    const entered = this.#plan.enter(() => {
      isAdmitted = true;
      this.#wake?.();
    });
    if (typeof entered !== "function") return { kind: "rejected", failure: entered };
    this.#leave = entered;
    if (isAdmitted) return null;
    return new Promise<void>((resolve) => (this.#wake = resolve)).then(() => this.#abandoned ?? null);
  }

  /** `headers`: of the trace; sent in addition to the attempt's own. */
  #begin(
    options: AttemptOptions,
    headers: AttemptObserver["headers"] | undefined,
  ): Promise<readonly GenerationEvent[] | null> {
    if (this.#abandoned) return Promise.resolve([{ type: "end", end: this.#abandoned }]);
    this.#options =
      headers && Object.keys(headers).length > 0
        ? { ...options, headers: { ...headers, ...options.headers } }
        : options;
    this.#attempt = new Attempt(this.#options);
    return this.#attempt.next();
  }

  /** Milliseconds until the next attempt at the same model; null: no further attempt. */
  #waitAfter(failed: FailedAttempt): number | null {
    const { retries, budget } = this.#plan;
    const wait = failed.number > retries ? null : waitBefore(failed, random);
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

/** The failed end of a batch without output; null if the batch has output or no failed end. */
function failedEnd(batch: readonly GenerationEvent[]): FailedAttempt["end"] | null {
  const last = batch.at(-1);
  if (last?.type !== "end" || !("failure" in last.end)) return null;
  return batch.some(isVisible) ? null : last.end;
}

/** The end of a request that could not be prepared. */
function refusal(error: unknown): GenerationEnd {
  if (error instanceof FailureError) return { kind: "rejected", failure: error.failure };
  return { kind: "engine-error", failure: internalError(error).failure };
}

/** The maximum number of times that one request is sent again because its refusals taught something. */
const maxLessons = 8;

/** Longer waits are left to the client: it gets the status with its Retry-After immediately, and its SDK waits. */
const maxWaitMs = 1000;
const firstWaitMs = 200;
/** An attempt that failed after a longer time is not repeated at the same server: the client has waited once. */
const maxRepeatedMs = 5000;

/**
 * Limits the retries of all requests to a fifth of the requests, and ten at once. Without a budget, retries multiply the load on a
 * server that fails because of its load.
 */
export class RetryBudget {
  #tokens = 10;

  deposit(): void {
    this.#tokens = Math.min(10, this.#tokens + 0.2);
  }

  withdraw(): boolean {
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }
}

/** Whether the same request may succeed if it is repeated. */
function isRetryable({ status, headers }: GenerationFailure): boolean {
  if (headers?.["x-should-retry"] === "false") return false;
  return status === 408 || status === 429 || (status >= 500 && status !== 501);
}

/** Whether the failure is the server's, not the request's, and counts against the target. */
function isServersFault({ status, cause }: GenerationFailure): boolean {
  return status >= 500 && status !== 501 && !isOutOfFiles(cause);
}

/** A refusal that taught something. */
interface Lesson {
  readonly batch: readonly GenerationEvent[] | null;
  /** The body that was refused. */
  readonly body: string;
  readonly target: UpstreamTarget;
}

/** An attempt that failed without output. */
interface FailedAttempt {
  readonly end: Extract<GenerationEnd, { readonly failure: GenerationFailure }>;
  /** From 1. */
  readonly number: number;
  readonly tookMs: number;
  /** Another target may be tried instead. */
  readonly hasOther: boolean;
}

/**
 * Milliseconds until the next attempt at the same model; null: none. Another target is tried immediately. The same target is tried again only
 * if that costs the client little time and the server little load: not after a time-out (the server may still be generating), an error
 * of a certificate, or a rate limit. `random` is uniform in [0, 1).
 */
function waitBefore({ end, number, tookMs, hasOther }: FailedAttempt, random: () => number): number | null {
  const { failure } = end;
  if (!isRetryable(failure)) return null;
  if (hasOther) return 0;
  if (end.kind === "idle-timeout" || tookMs > maxRepeatedMs || !isWorthRepeating(failure.cause)) return null;
  const requested = failure.retryAfterSeconds;
  if (requested === undefined && failure.status === 429) return null;
  const wait = requested === undefined ? random() * firstWaitMs * 2 ** number : requested * 1000;
  return wait > maxWaitMs ? null : Math.floor(wait);
}
