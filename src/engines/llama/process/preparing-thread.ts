import { Worker } from "node:worker_threads";
import type { Format } from "../../../text/formats/format.ts";
import type { GenerationFailure } from "../../../wire/core/events.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import type { JsonSchema } from "../../../wire/core/message.ts";
import type { LogListener } from "../../../wire/core/generation-observer.ts";
import type { AnswerCheckPlan, ConstraintPlan } from "../preparing/constraint-plan.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import type { FromThread, Preparation, ThreadAnswer, ThreadJob, ThreadSetup } from "../preparing/thread-messages.ts";

export interface PreparingThreadOptions {
  readonly setup: ThreadSetup;
  readonly log: LogListener;
  /** Time limits of a job, in milliseconds. */
  readonly limitMs: { readonly prepare: number; readonly check: number };
}

/** A prepared request without its ids. */
export interface Prepared {
  readonly request: Omit<PreparedRequest, "id" | "requestId" | "preparingMs">;
  readonly warnings: readonly string[];
  readonly check?: AnswerCheckPlan;
}

/**
 * A job of a cancelled request may run for this time, in milliseconds. A new thread takes about as long to start, and does not have the
 * grammars that the old one made.
 */
const cancelledJobMs = 250;

interface Job {
  readonly message: ThreadJob;
  readonly isWanted: () => boolean;
  readonly resolve: (answer: ThreadAnswer | null) => void;
}

/**
 * Prepares requests and checks answers in a separate thread, one at a time, so that decodes do not wait. Requests come first, in the order
 * of their arrival, because checks are only for the log. If a job takes too long or crashes the thread, only that job fails, and the next
 * job starts a new thread.
 */
export class PreparingThread {
  readonly #options: PreparingThreadOptions;
  readonly #requests: Job[] = [];
  readonly #checks: Job[] = [];
  /** `undefined` after a failure, until the next job. */
  #worker: Worker | undefined;
  /** What the worker has registered, by its numbers, which start again with each worker. */
  #formats = new Map<number, Format>();
  #constraints = new Map<number, ConstraintPlan>();
  #current: { readonly job: Job; readonly timer: NodeJS.Timeout; readonly started: number } | undefined;
  #constraintsMade = 0;

  constructor(options: PreparingThreadOptions) {
    this.#options = options;
    this.#worker = this.#start();
  }

  /** Number of grammars that were made from tools and schemas. */
  get constraintsMade(): number {
    return this.#constraintsMade;
  }

  /**
   * Prepares a request, given as chunks of the JSON text of an `AskedOfModel`. Resolves with `null` if `isWanted` returns false before or
   * after the work. Rejects with FailureError for a request that cannot be served.
   */
  async prepare(chunks: readonly string[], isWanted: () => boolean): Promise<Prepared | null> {
    const answer = await this.#enqueue(this.#requests, { type: "prepare", asked: chunks }, isWanted);
    if (answer === null || !isWanted()) return null;
    if (answer.type === "prepared") return this.#resolved(answer.preparation);
    throw new FailureError(answer.type === "refused" ? answer.failure : notPrepared("an answer of another kind"));
  }

  /** Checks a JSON text against a client's schema. Resolves with the errors or `null`. Rejects with FailureError if that is not possible. */
  async check(json: string, schema: JsonSchema): Promise<string | null> {
    const answer = await this.#enqueue(this.#checks, { type: "check", json, schema }, () => true);
    if (answer?.type === "checked") return answer.errors;
    throw new FailureError(answer?.type === "refused" ? answer.failure : notPrepared("an answer of another kind"));
  }

  /** A request was cancelled. If it is the current job, and it takes long, the thread is replaced. */
  onCancelled(): void {
    const current = this.#current;
    if (!current || current.job.isWanted()) return;
    setTimeout(
      () => {
        if (this.#current === current) this.#replace(null, "was at a request whose client has left");
      },
      Math.max(0, current.started + cancelledJobMs - performance.now()),
    );
  }

  async stop(): Promise<void> {
    await this.#worker?.terminate();
  }

  #enqueue(queue: Job[], message: ThreadJob, isWanted: () => boolean): Promise<ThreadAnswer | null> {
    return new Promise((resolve) => {
      queue.push({ message, isWanted, resolve });
      this.#next();
    });
  }

  #next(): void {
    while (!this.#current) {
      const job = this.#requests.shift() ?? this.#checks.shift();
      if (!job) return;
      if (job.isWanted()) this.#run(job);
      else job.resolve(null);
    }
  }

  #run(job: Job): void {
    const { type } = job.message;
    const limitMs = this.#options.limitMs[type];
    const timer = setTimeout(() => this.#replace(tookTooLong(type, limitMs), "took too long"), limitMs);
    this.#current = { job, timer, started: performance.now() };
    this.#worker ??= this.#start();
    this.#worker.postMessage(job.message);
  }

  #complete(answer: ThreadAnswer | null): void {
    const current = this.#current;
    this.#current = undefined;
    clearTimeout(current?.timer);
    current?.job.resolve(answer);
    this.#next();
  }

  #start(): Worker {
    // The compiled module. A thread that runs out of memory does not end the process.
    const worker = new Worker(new URL("../preparing/thread.js", import.meta.url), {
      workerData: this.#options.setup,
      resourceLimits: { maxOldGenerationSizeMb: 1024 },
    });
    worker.on("message", (message: FromThread) => {
      if (worker === this.#worker) this.#receive(message);
    });
    worker.on("error", (error) => {
      if (worker === this.#worker) this.#replace(notPrepared(error), `failed: ${String(error)}`);
    });
    return worker;
  }

  /** Terminates the worker with its current job. The next job starts a new worker. */
  #replace(failure: GenerationFailure | null, why: string): void {
    this.#options.log(`The thread that prepares requests ${why}; it is started again.`, "warn");
    void this.#worker?.terminate();
    this.#worker = undefined;
    this.#formats = new Map();
    this.#constraints = new Map();
    this.#complete(failure && { type: "refused", failure });
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
        this.#complete(message);
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

function notPrepared(cause: unknown): GenerationFailure {
  return {
    message: "The request could not be prepared for the model.",
    status: 500,
    kind: "internal",
    param: null,
    code: null,
    cause: String(cause),
  };
}

/** Status 400 rather than 503, because a retry would take as long. */
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
