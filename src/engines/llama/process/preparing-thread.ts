import { Worker } from "node:worker_threads";
import type { Format } from "../../../formats/format.ts";
import type { GenerationFailure } from "../../../core/events.ts";
import { FailureError } from "../../../core/failure.ts";
import type { JsonSchema } from "../../../core/message.ts";
import type { Observe } from "../../../core/observe.ts";
import type { AnswerCheckPlan, ConstraintPlan } from "../preparing/constraint-plan.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import type { FromThread, Preparation, ThreadAnswer, ThreadJob, ThreadSetup } from "../preparing/thread-messages.ts";

export interface PreparingThreadOptions {
  readonly setup: ThreadSetup;
  readonly log: Observe;
  /** How long one job may take, in milliseconds. */
  readonly limitMs: { readonly prepare: number; readonly check: number };
}

/** A request that is ready for the scheduler, but for its number. */
export interface Prepared {
  readonly request: Omit<PreparedRequest, "id" | "requestId" | "preparingMs">;
  readonly warnings: readonly string[];
  readonly check?: AnswerCheckPlan;
}

/**
 * A job is left to end though nobody waits for it, in milliseconds: a new thread takes about as long, and has forgotten the grammars that
 * the old one made.
 */
const worthEnding = 250;

interface Job {
  readonly message: ThreadJob;
  readonly isWanted: () => boolean;
  readonly settle: (answer: ThreadAnswer | null) => void;
}

/**
 * Prepares requests and checks answers in a separate thread, one at a time, so that the model's steps do not wait. Requests come first,
 * in the order of their arrival; checks are only for the log. If a job takes too long or crashes the thread, only that job fails: the next
 * one starts a new thread.
 */
export class PreparingThread {
  readonly #options: PreparingThreadOptions;
  readonly #requests: Job[] = [];
  readonly #checks: Job[] = [];
  /** undefined: the last one failed, and there has been no job since. */
  #worker: Worker | undefined;
  /** What the worker has registered, by its numbers; they begin anew with each worker. */
  #formats = new Map<number, Format>();
  #constraints = new Map<number, ConstraintPlan>();
  #current: { readonly job: Job; readonly timer: NodeJS.Timeout; readonly begun: number } | undefined;
  #constraintsMade = 0;

  constructor(options: PreparingThreadOptions) {
    this.#options = options;
    this.#worker = this.#start();
  }

  /** Constraints that were made of tools and schemas, in all. */
  get constraintsMade(): number {
    return this.#constraintsMade;
  }

  /**
   * Prepares a request, given as the JSON text of an `AskedOfModel` in pieces. Resolves with null if `isWanted` says, before or after the
   * work, that the client has left. Rejects with FailureError for a request that cannot be served.
   */
  async prepare(asked: readonly string[], isWanted: () => boolean): Promise<Prepared | null> {
    const answer = await this.#do(this.#requests, { type: "prepare", asked }, isWanted);
    if (answer === null || !isWanted()) return null;
    if (answer.type === "prepared") return this.#resolved(answer.preparation);
    throw new FailureError(answer.type === "refused" ? answer.failure : unprepared("an answer of another kind"));
  }

  /** Checks a JSON text against a client's schema: the errors, or null. Rejects with FailureError if it cannot be checked. */
  async check(json: string, schema: JsonSchema): Promise<string | null> {
    const answer = await this.#do(this.#checks, { type: "check", json, schema }, () => true);
    if (answer?.type === "checked") return answer.errors;
    throw new FailureError(answer?.type === "refused" ? answer.failure : unprepared("an answer of another kind"));
  }

  /** Somebody left who waited for a job. If it is the current one, and it takes long, it is given up. */
  left(): void {
    const current = this.#current;
    if (!current || current.job.isWanted()) return;
    setTimeout(
      () => {
        if (this.#current === current) this.#giveUp(null, "was at a request whose client has left");
      },
      Math.max(0, current.begun + worthEnding - performance.now()),
    );
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate();
  }

  #do(queue: Job[], message: ThreadJob, isWanted: () => boolean): Promise<ThreadAnswer | null> {
    return new Promise((settle) => {
      queue.push({ message, isWanted, settle });
      this.#next();
    });
  }

  #next(): void {
    while (!this.#current) {
      const job = this.#requests.shift() ?? this.#checks.shift();
      if (!job) return;
      if (job.isWanted()) this.#begin(job);
      else job.settle(null);
    }
  }

  #begin(job: Job): void {
    const { type } = job.message;
    const limitMs = this.#options.limitMs[type];
    const timer = setTimeout(() => this.#giveUp(tookTooLong(type, limitMs), "took too long"), limitMs);
    this.#current = { job, timer, begun: performance.now() };
    this.#worker ??= this.#start();
    this.#worker.postMessage(job.message);
  }

  #settle(answer: ThreadAnswer | null): void {
    const current = this.#current;
    this.#current = undefined;
    clearTimeout(current?.timer);
    current?.job.settle(answer);
    this.#next();
  }

  #start(): Worker {
    // The compiled module. A thread that runs out of memory ends alone.
    const worker = new Worker(new URL("../preparing/thread.js", import.meta.url), {
      workerData: this.#options.setup,
      resourceLimits: { maxOldGenerationSizeMb: 1024 },
    });
    worker.on("message", (message: FromThread) => {
      if (worker === this.#worker) this.#receive(message);
    });
    worker.on("error", (error) => {
      if (worker === this.#worker) this.#giveUp(unprepared(error), `failed: ${String(error)}`);
    });
    return worker;
  }

  /** The worker is given up with the job that it is at; the next job starts a new one. */
  #giveUp(failure: GenerationFailure | null, why: string): void {
    this.#options.log(`The thread that prepares requests ${why}; it is started again.`, "warn");
    void this.#worker?.terminate();
    this.#worker = undefined;
    this.#formats = new Map();
    this.#constraints = new Map();
    this.#settle(failure && { type: "refused", failure });
  }

  #receive(message: FromThread): void {
    switch (message.type) {
      case "format":
        this.#formats.set(message.number, message.format);
        break;
      case "constraint": {
        const { plan, number } = message;
        this.#constraintsMade++;
        this.#constraints.set(number, { ...plan, format: registered(this.#formats, plan.format) });
        break;
      }
      case "forget":
        this.#constraints.delete(message.number);
        break;
      default:
        this.#settle(message);
    }
  }

  #resolved({ request, ...rest }: Preparation): Prepared {
    const { reading, constraint, ...own } = request;
    return {
      ...rest,
      request: {
        ...own,
        reading: { ...reading, format: registered(this.#formats, reading.format) },
        ...(constraint !== undefined && { constraint: registered(this.#constraints, constraint) }),
      },
    };
  }
}

function registered<T>(known: ReadonlyMap<number, T>, number: number): T {
  const value = known.get(number);
  if (value === undefined) throw new Error(`Nothing is registered under ${number}.`);
  return value;
}

function unprepared(cause: unknown): GenerationFailure {
  return {
    message: "The request could not be prepared for the model.",
    status: 500,
    kind: "internal",
    param: null,
    code: null,
    cause: String(cause),
  };
}

/** 400 and not 503: a retry would take as long. */
function tookTooLong(what: ThreadJob["type"], limitMs: number): GenerationFailure {
  return {
    message:
      what === "check"
        ? `it took more than ${limitMs / 1000} seconds`
        : `The request took more than ${limitMs / 1000} seconds to prepare. Please send a shorter conversation or simpler schemas.`,
    status: 400,
    kind: "invalid-request",
    param: null,
    code: null,
  };
}
