import { type GenerationEnd, type GenerationEvent, type GenerationFailure, isVisible } from "../../wire/core/events.ts";
import type { RequestTurns } from "./request-turns.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { AttemptObserver } from "../../wire/core/generation-observer.ts";
import type { Placed } from "../../wire/core/open-list.ts";
import { internalError } from "../../wire/apis/failures.ts";
import { Attempt, type AttemptOptions } from "./attempt.ts";
import type { TargetSet, UpstreamTarget } from "./targets.ts";
import { decide, isServersFault, type Outcome, type RetryBudget } from "./next-attempt.ts";
import type { FailedEnd } from "./transport-failure.ts";
import { random } from "../../wire/random/random.ts";

type Batch = readonly GenerationEvent[];

export type RefusedLimit = NonNullable<GenerationFailure["answerLimit"]>;

export interface PlannedAttempt {
  readonly target: UpstreamTarget;
  /** Use a new connection. */
  readonly fresh: boolean;
  /** The highest limit on the answer's length that the model takes, in tokens; null: none may be sent; undefined: not known. */
  readonly limit: number | null | undefined;
  /** Aborts when the generation is abandoned. */
  readonly signal: () => AbortSignal;
}

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
  /** Prepares an attempt. Throws or rejects if the request cannot be written for the target. */
  prepare(planned: PlannedAttempt): AttemptOptions | Promise<AttemptOptions>;
  /** The `limit` of a further attempt, after a refusal of the request's own limit; undefined: a further attempt would fail, too. */
  limitAfter(refused: RefusedLimit): Promise<number | null | undefined>;
  /**
   * Called when an attempt was refused. Returns whether the refusal taught something about the server: then the request is prepared again,
   * and sent again to the same target if that changes its body. "replace": the caller replaces this generation by others.
   */
  learn(failure: GenerationFailure, refused: AttemptOptions): boolean | "replace";
  /** Called when a target accepted a request: what its last refusal taught holds for others. */
  confirmLessons(target: UpstreamTarget): void;
  /** Called when an attempt begins. */
  observe(target: UpstreamTarget): AttemptObserver | undefined;
  /** Called when an attempt failed and another one follows. */
  retried(failure: GenerationFailure, target: UpstreamTarget): void;
  /** Called with each batch of the answer. */
  read(events: Batch): void;
  /** Called when the answer is complete or abandoned. */
  closed(stream: GenerationStream, attempt: AttemptOptions | undefined, end: GenerationEnd): void;
}

/** One generation: attempts, until one of them emits an event. From then on there is no other attempt, so that no text is sent twice. */
export class GenerationStream implements AsyncIterableIterator<Batch>, Placed {
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

  async next(): Promise<IteratorResult<Batch, undefined>> {
    if (this.#closed) return over;
    let batch: Batch | null;
    // An iterator of a generation never rejects: what goes wrong in between is its end, which the observers see.
    try {
      if (this.#committed && this.#attempt) batch = await this.#attempt.next();
      else {
        batch = await this.#first();
        this.#committed = true;
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
  follow(take: (batch: Batch) => boolean): Promise<void> {
    if (this.#closed || !this.#committed || !this.#attempt) return Promise.resolve();
    return this.#attempt.follow((batch) => {
      this.#read(batch);
      return take(batch);
    });
  }

  #read(batch: Batch): void {
    this.#plan.read(batch);
    const last = batch.at(-1);
    if (last?.type === "end") this.#close(last.end);
  }

  return(): Promise<IteratorResult<Batch, undefined>> {
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

  /** The first batch for the client: that of the first attempt that succeeds, or of the last one that fails. Rejects when it is abandoned. */
  async #first(): Promise<Batch> {
    this.#throwIfAbandoned();
    const { turns, budget, retries } = this.#plan;
    const recalling = turns.recall();
    if (recalling) await this.#unlessAbandoned(recalling);
    const entering = this.#enter();
    if (entering) await this.#unlessAbandoned(entering);
    const tried = new Tried();
    for (;;) {
      const { sent, batch, outcome } = await this.#try(tried);
      const decision = decide(outcome, { number: tried.number, retries, hasBudget: budget.isLeft }, random);
      if (decision.kind === "give") return batch;
      this.#observer?.ended(decision.end);
      this.#observer = undefined;
      this.#plan.retried(decision.end.failure, sent.target);
      if (decision.kind === "adapt") {
        tried.lessons++;
        tried.lesson = { sent, batch };
        tried.next = sent.target;
      } else if (decision.kind === "limit") {
        tried.limit = decision.limit;
        tried.targets.delete(sent.target);
      } else {
        tried.number++;
        budget.withdraw();
        if (decision.waitMs > 0) await this.#sleep(decision.waitMs);
      }
    }
  }

  /** Sends the request to the next target. */
  async #try(tried: Tried): Promise<Attempted> {
    const { targets, conversation, turns, prepare } = this.#plan;
    const target = tried.next ?? targets.choose(tried.targets, conversation, turns.latestSource);
    tried.next = undefined;
    tried.targets.add(target);
    const preparing = prepare({ target, fresh: false, limit: tried.limit, signal: this.#signal });
    // No `await` without need: other requests choose their targets only when this one counts as outstanding.
    const sent = preparing instanceof Promise ? await this.#unlessAbandoned(preparing) : preparing;
    const { lesson } = tried;
    if (lesson?.sent.target === target && lesson.sent.body === sent.body)
      return { ...lesson, outcome: { kind: "unchanged" } };
    const begun = performance.now();
    const observer = (this.#observer = this.#plan.observe(target));
    let batch = await this.#begin(sent, observer?.headers);
    // The connection was closed before the request arrived: this was no attempt.
    if (this.#attempt?.neverArrived === true) {
      const again = prepare({ target, fresh: true, limit: tried.limit, signal: this.#signal });
      batch = await this.#begin(await this.#unlessAbandoned(Promise.resolve(again)), observer?.headers);
    }
    return { sent, batch, outcome: await this.#outcome(sent, batch, tried, begun) };
  }

  /** `begun`: the time (of `performance.now`) when the request was sent. */
  async #outcome(sent: AttemptOptions, batch: Batch, tried: Tried, begun: number): Promise<Outcome> {
    if (this.#abandoned) return { kind: "abandoned" };
    const { targets } = this.#plan;
    const { target } = sent;
    const end = failedEnd(batch);
    const learned = end !== null && tried.lessons < maxLessons && this.#plan.learn(end.failure, sent);
    if (end && !learned && isServersFault(end.failure)) targets.failed(target, end.failure);
    else target.succeeded();
    if (!end) {
      this.#plan.confirmLessons(target);
      return { kind: "answered" };
    }
    if (learned) return learned === "replace" ? { kind: "replaced" } : { kind: "taught", end };
    const { answerLimit } = end.failure;
    if (answerLimit && tried.limit === undefined) {
      const limit = await this.#unlessAbandoned(this.#plan.limitAfter(answerLimit));
      if (limit !== undefined) return { kind: "limited", end, limit };
    }
    return { kind: "failed", end, tookMs: performance.now() - begun, hasOther: targets.hasFresh(tried.targets) };
  }

  /** Resolves with the result, or rejects as soon as the generation is abandoned. */
  async #unlessAbandoned<T>(result: Promise<T>): Promise<T> {
    await new Promise<unknown>((resolve, reject) => {
      this.#wake = () => resolve(undefined);
      result.then(resolve, reject);
    });
    this.#throwIfAbandoned();
    return result;
  }

  /** `next` returns the end of the generation in place of the error. */
  #throwIfAbandoned(): void {
    if (this.#abandoned) throw new Error("The generation was abandoned.");
  }

  /** Resolves when the request may be sent; undefined: it may be sent now. Throws `FailureError` for one that may not. */
  #enter(): Promise<void> | undefined {
    let isAdmitted = false;
    let admit = (): void => void (isAdmitted = true);
    const entered = this.#plan.enter(() => admit());
    if (typeof entered !== "function") throw new FailureError(entered);
    this.#leave = entered;
    return isAdmitted ? undefined : new Promise((resolve) => (admit = resolve));
  }

  /** `headers`: of the trace; sent in addition to the attempt's own. */
  async #begin(options: AttemptOptions, headers: AttemptObserver["headers"] | undefined): Promise<Batch> {
    this.#throwIfAbandoned();
    this.#options =
      headers && Object.keys(headers).length > 0
        ? { ...options, headers: { ...headers, ...options.headers } }
        : options;
    this.#attempt = new Attempt(this.#options);
    return (await this.#attempt.next()) ?? [];
  }

  async #sleep(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const waiting = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
    await this.#unlessAbandoned(waiting).finally(() => clearTimeout(timer));
  }
}

const clientGone: GenerationEnd = { kind: "client-gone" };

const over: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** The failed end of a batch without output; null if the batch has output or no failed end. */
function failedEnd(batch: Batch): FailedEnd | null {
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

/** What was tried for one request. */
class Tried {
  /** See `Allowance`. */
  number = 1;
  readonly targets = new Set<UpstreamTarget>();
  /** See `PlannedAttempt`. */
  limit: number | null | undefined;
  lessons = 0;
  /** The last attempt whose refusal taught something. */
  lesson: Omit<Attempted, "outcome"> | undefined;
  /** The target that has taught something, for the next attempt: others know nothing of it. */
  next: UpstreamTarget | undefined;
}

interface Attempted {
  readonly sent: AttemptOptions;
  readonly batch: Batch;
  readonly outcome: Outcome;
}
