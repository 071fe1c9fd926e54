import type { ModelInfo } from "../../core/engine.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { Observe } from "../../core/observe.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { FairQueue } from "../lifecycle/fair-queue.ts";
import { failureEnd } from "./program-failure.ts";
import type { WorkerSetup } from "./worker-messages.ts";
import { WorkerThread } from "./worker-thread.ts";

/** Requests of one owner that may wait for a thread before more are refused. */
const queueLimit = 256;

/**
 * The threads of one version of a program. All runs of an async program share one thread; a plain function, which may
 * block its thread, gets one for each run, at most `limit` at a time; further runs wait.
 */
export class WorkerPool {
  readonly #setup: WorkerSetup;
  readonly #limit: number;
  readonly #log: Observe | undefined;
  readonly #threads = new Set<WorkerThread>();
  readonly #waiting = new FairQueue<() => void>();
  /** Threads that are starting: they count towards the limit. */
  #starting = 0;
  readonly blocking: boolean;
  readonly models: readonly ModelInfo[] | undefined;

  private constructor(setup: WorkerSetup, limit: number, first: WorkerThread, log: Observe | undefined) {
    this.#setup = setup;
    this.#log = log;
    this.#limit = first.blocking ? limit : 1;
    this.#add(first);
    this.blocking = first.blocking;
    this.models = first.models;
  }

  /** Loads the program in a first thread. Throws `ProgramLoadError`. */
  static async open(setup: WorkerSetup, limit: number, log?: Observe): Promise<WorkerPool> {
    return new WorkerPool(setup, limit, await WorkerThread.start(setup, log), log);
  }

  get running(): number {
    let sum = 0;
    for (const thread of this.#threads) sum += thread.load;
    return sum;
  }

  get queued(): number {
    return this.#waiting.length;
  }

  get threads(): { busy: number; total: number } {
    return { busy: [...this.#threads].filter((thread) => thread.load > 0).length, total: this.#limit };
  }

  async *run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    let thread: WorkerThread | "full";
    try {
      thread = await this.#thread(request.owner, signal);
    } catch (error) {
      yield [
        signal.aborted
          ? { type: "end", end: { kind: "client-gone" } }
          : failureEnd(error, { requestId: request.id, showErrors: this.#setup.showErrors }),
      ];
      return;
    }
    if (thread === "full") {
      yield [queueFull];
      return;
    }
    yield* thread.run(request, signal);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#threads].map((thread) => thread.stop()));
  }

  /** A thread that is claimed for the caller. */
  async #thread(owner: string | undefined, signal: AbortSignal): Promise<WorkerThread | "full"> {
    for (;;) {
      if (signal.aborted) {
        // It may have been woken and left in one moment: the thread it was woken for is the next one's.
        this.#wakeOne();
        throw signal.reason;
      }
      const free = this.#free();
      if (free) return free.claim();
      if (this.#threads.size + this.#starting < this.#limit) return this.#start();
      if (this.#waiting.lengthOf(owner) >= queueLimit) return "full";
      await new Promise<void>((resolve, reject) => {
        const abort = () => {
          this.#waiting.drop(go);
          reject(signal.reason);
        };
        const go = () => {
          signal.removeEventListener("abort", abort);
          resolve();
        };
        this.#waiting.push(go, owner);
        signal.addEventListener("abort", abort, { once: true });
      });
    }
  }

  #free(): WorkerThread | undefined {
    for (const thread of this.#threads) {
      if (!thread.alive) this.#threads.delete(thread);
      else if (!this.blocking || thread.load === 0) return thread;
    }
    return undefined;
  }

  async #start(): Promise<WorkerThread> {
    this.#starting++;
    try {
      return this.#add(await WorkerThread.start(this.#setup, this.#log)).claim();
    } finally {
      this.#starting--;
      // Runs that came meanwhile for a program of one thread can use it now; and where it did not start, another one may be tried.
      if (this.blocking) this.#wakeOne();
      else while (this.#waiting.length > 0) this.#wakeOne();
    }
  }

  #add(thread: WorkerThread): WorkerThread {
    this.#threads.add(thread);
    // A run that is left goes on until its program looks up. Whoever was woken when it was left would find the thread busy.
    thread.freed = () => this.#wakeOne();
    return thread;
  }

  #wakeOne(): void {
    this.#waiting.shift()?.();
  }
}

const queueFull: GenerationEvent = {
  type: "end",
  end: {
    kind: "rejected",
    failure: {
      message: "The program is busy and its queue is full. Please try again later.",
      status: 429,
      kind: "overloaded",
      code: "rate_limit_exceeded",
      retryAfterSeconds: 1,
    },
  },
};
