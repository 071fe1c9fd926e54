import { type GenerationEnd, type GenerationEvent, type GenerationFailure, isVisible } from "../../wire/core/events.ts";
import type { RequestTurns } from "./request-turns.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { AttemptObserver } from "../../wire/core/generation-observer.ts";
import type { Placed } from "../../wire/core/open-list.ts";
import { Relay } from "../../wire/core/relay.ts";
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
export class GenerationStream implements AsyncIterable<Batch>, Placed {
  place = -1;
  readonly #plan: GenerationPlan;
  readonly #relay: Relay;
  #attempt: Attempt | undefined;
  #options: AttemptOptions | undefined;
  /** Observes the current attempt. */
  #observer: AttemptObserver | undefined;
  /** The first event was sent. */
  #committed = false;
  #end: GenerationEnd | undefined;
  /** Admits a waiting request. */
  #leave: (() => void) | undefined;
  #sleep: NodeJS.Timeout | undefined;

  constructor(plan: GenerationPlan) {
    this.#plan = plan;
    plan.budget.deposit();
    this.#relay = new Relay(() => this.#open(), {
      read: (batch) => this.#reading(batch),
      onEnd: () => this.#close(clientGone),
    });
  }

  [Symbol.asyncIterator](): Relay {
    return this.#relay;
  }

  /** Stops the generation. A waiting `next` gets `end`. */
  abandon(end: GenerationEnd): void {
    if (this.#end) return;
    this.#attempt?.abort(end);
    if (this.#committed) return;
    this.#close(end);
    this.#relay.finish([{ type: "end", end }]);
  }

  /** An iterator of a generation never rejects: what goes wrong is its end, which the observers see. */
  async #open(): Promise<Batch> {
    let batch: Batch;
    try {
      batch = await this.#first();
    } catch (error) {
      batch = [{ type: "end", end: refusal(error) }];
    }
    if (this.#relay.hasEnded) return [];
    this.#committed = true;
    if (this.#options) this.#options.body = "";
    return this.#reading(batch);
  }

  #reading(batch: Batch): Batch {
    try {
      this.#plan.read(batch);
    } catch (error) {
      const end = refusal(error);
      this.#close(end);
      return [{ type: "end", end }];
    }
    const last = batch.at(-1);
    if (last?.type === "end") this.#close(last.end);
    return batch;
  }

  #close(end: GenerationEnd): void {
    if (this.#end) return;
    this.#end = end;
    clearTimeout(this.#sleep);
    this.#leave?.();
    this.#observer?.ended(end);
    this.#plan.closed(this, this.#options, end);
  }

  /** The first batch for the client: that of the first attempt that succeeds, or of the last one that fails. Rejects when it is abandoned. */
  async #first(): Promise<Batch> {
    const { turns, budget, retries } = this.#plan;
    const recalling = turns.recall();
    if (recalling) await this.#unlessEnded(recalling);
    const entering = this.#enter();
    if (entering) await this.#unlessEnded(entering);
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
        if (decision.waitMs > 0)
          await this.#unlessEnded(new Promise((resolve) => (this.#sleep = setTimeout(resolve, decision.waitMs))));
      }
    }
  }

  /** Sends the request to the next target. */
  async #try(tried: Tried): Promise<Attempted> {
    const { targets, conversation, turns, prepare } = this.#plan;
    const target = tried.next ?? targets.choose(tried.targets, conversation, turns.latestSource);
    tried.next = undefined;
    tried.targets.add(target);
    const preparing = prepare({ target, fresh: false, limit: tried.limit, signal: () => this.#relay.signal });
    // No `await` without need: other requests choose their targets only when this one counts as outstanding.
    const sent = preparing instanceof Promise ? await this.#unlessEnded(preparing) : preparing;
    const { lesson } = tried;
    if (lesson?.sent.target === target && lesson.sent.body === sent.body)
      return { ...lesson, outcome: { kind: "unchanged" } };
    const begun = performance.now();
    const observer = (this.#observer = this.#plan.observe(target));
    let batch = await this.#begin(sent, observer?.headers);
    // The connection was closed before the request arrived: this was no attempt.
    if (this.#attempt?.neverArrived === true) {
      const again = prepare({ target, fresh: true, limit: tried.limit, signal: () => this.#relay.signal });
      batch = await this.#begin(await this.#unlessEnded(Promise.resolve(again)), observer?.headers);
    }
    return { sent, batch, outcome: await this.#outcome(sent, batch, tried, begun) };
  }

  /** `begun`: the time (of `performance.now`) when the request was sent. */
  async #outcome(sent: AttemptOptions, batch: Batch, tried: Tried, begun: number): Promise<Outcome> {
    if (this.#relay.hasEnded) return { kind: "abandoned" };
    const { targets } = this.#plan;
    const { target } = sent;
    const end = failedEnd(batch);
    const learned = end !== null && tried.lessons < maxLessons && this.#plan.learn(end.failure, sent);
    if (end && !learned && isServersFault(end.failure)) targets.failed(target, end.failure);
    else target.succeeded();
    const ofKey = end !== null && target.keyState?.failed(end.failure, performance.now()) === true;
    if (!end) {
      this.#plan.confirmLessons(target);
      return { kind: "answered" };
    }
    if (learned) return learned === "replace" ? { kind: "replaced" } : { kind: "taught", end };
    const { answerLimit } = end.failure;
    if (answerLimit && tried.limit === undefined) {
      const limit = await this.#unlessEnded(this.#plan.limitAfter(answerLimit));
      if (limit !== undefined) return { kind: "limited", end, limit };
    }
    return { kind: "failed", end, tookMs: performance.now() - begun, hasOther: targets.hasFresh(tried.targets), ofKey };
  }

  /** Resolves with the result. Rejects, or stays pending, if the generation has ended meanwhile: the relay ignores what follows. */
  async #unlessEnded<T>(result: Promise<T>): Promise<T> {
    const value = await result;
    if (this.#relay.hasEnded) throw new Error("The generation has ended.");
    return value;
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
  #begin(options: AttemptOptions, headers: AttemptObserver["headers"] | undefined): Promise<Batch> {
    const sent =
      headers && Object.keys(headers).length > 0
        ? { ...options, headers: { ...headers, ...options.headers } }
        : options;
    this.#options = sent;
    return this.#relay.ask(() => (this.#attempt = new Attempt(sent)));
  }
}

const clientGone: GenerationEnd = { kind: "client-gone" };

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
