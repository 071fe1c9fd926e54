import type { ModelInfo } from "../../wire/core/engine.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { FairQueue } from "../lifecycle/fair-queue.ts";
import { failureEnd } from "./program-failure.ts";
import type { Format } from "../../text/formats/format.ts";
import { Worker } from "node:worker_threads";
import { ProgramLoadError } from "./classify-program.ts";

/** The maximum number of requests of one owner that wait for a thread. */
const queueLimit = 256;

/**
 * The threads of one version of a program. All runs of an async program share one thread. A plain function may block its thread, so each
 * run has a thread of its own: at most `limit` at a time, further runs wait.
 */
export class WorkerPool {
  readonly #setup: WorkerSetup;
  readonly #limit: number;
  readonly #log: LogListener | undefined;
  readonly #threads = new Set<WorkerThread>();
  readonly #waiting = new FairQueue<() => void>();
  /** Threads that are starting. They count towards the limit. */
  #starting = 0;
  readonly blocking: boolean;
  readonly models: readonly ModelInfo[] | undefined;

  private constructor(setup: WorkerSetup, limit: number, first: WorkerThread, log: LogListener | undefined) {
    this.#setup = setup;
    this.#log = log;
    this.#limit = first.blocking ? limit : 1;
    this.#add(first);
    this.blocking = first.blocking;
    this.models = first.models;
  }

  /** Loads the program in a first thread. Throws `ProgramLoadError`. */
  static async open(setup: WorkerSetup, limit: number, log?: LogListener): Promise<WorkerPool> {
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
      thread = await this.#thread(request, signal);
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

  /** A thread, claimed for the caller. */
  async #thread({ owner, tier }: GenerationRequest, signal: AbortSignal): Promise<WorkerThread | "full"> {
    for (;;) {
      if (signal.aborted) {
        // The request may have been woken and then aborted immediately: its thread goes to the next one.
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
        this.#waiting.push(go, owner, tier);
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
      // Waiting runs of an async program share the thread. If it did not start, one of them tries again.
      if (this.blocking) this.#wakeOne();
      else while (this.#waiting.length > 0) this.#wakeOne();
    }
  }

  #add(thread: WorkerThread): WorkerThread {
    this.#threads.add(thread);
    // An aborted run continues until its program notices, so the next run is woken when the thread is really free.
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

/** The data that a program's worker thread starts with. */
export interface WorkerSetup {
  readonly path: string;
  readonly format: Format;
  /** Clients see the message of any exception. */
  readonly showErrors: boolean;
}

/** To the worker. A run may send as many batches as it has credit. Each batch that is read returns one credit. */
export type ToWorker =
  | { readonly type: "run"; readonly run: number; readonly request: GenerationRequest; readonly credit: number }
  | { readonly type: "credit"; readonly run: number }
  | { readonly type: "abort"; readonly run: number };

/** From the worker. */
export type FromWorker =
  | { readonly type: "ready"; readonly blocking: boolean; readonly models?: readonly ModelInfo[] }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "events"; readonly run: number; readonly events: readonly GenerationEvent[] }
  /** A line for the server's log. */
  | { readonly type: "warning"; readonly line: string }
  /** The run has ended: its generator has returned, and its `finally` blocks have run. */
  | { readonly type: "done"; readonly run: number };

/** The maximum number of batches that wait for a slow client: then the program is paused. */
const credit = 16;
/** The time that a module may take to load, and an aborted run to end, in milliseconds. */
const loadTimeoutMs = 60_000;
const abortTimeoutMs = 2_000;

interface Run {
  readonly batches: (readonly GenerationEvent[])[];
  wake: () => void;
  done: boolean;
}

/** One worker thread with a program loaded in it. */
class WorkerThread {
  readonly #worker: Worker;
  readonly #log: LogListener | undefined;
  readonly #runs = new Map<number, Run>();
  #nextRun = 0;
  #claimed = 0;
  #exited = false;
  /** Called when a run or the thread has ended. */
  freed: () => void = () => {};
  readonly blocking: boolean;
  /** The models of an Engine; undefined for a program. */
  readonly models: readonly ModelInfo[] | undefined;

  private constructor(worker: Worker, ready: FromWorker & { type: "ready" }, log: LogListener | undefined) {
    this.#worker = worker;
    this.#log = log;
    this.blocking = ready.blocking;
    this.models = ready.models;
    worker.on("message", (message: FromWorker) => this.#receive(message));
    // Without a listener an uncaught exception in the program would end the server.
    worker.on("error", () => {});
    worker.on("exit", () => this.#exit());
  }

  /** Starts a thread and loads the program. Throws `ProgramLoadError`. */
  static async start(setup: WorkerSetup, log?: LogListener): Promise<WorkerThread> {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { workerData: setup });
    const ready = await firstMessage(worker, setup.path);
    return new WorkerThread(worker, ready, log);
  }

  get alive(): boolean {
    return !this.#exited;
  }

  /** The number of open runs, including claimed ones. */
  get load(): number {
    return this.#runs.size + this.#claimed;
  }

  /** Reserves the thread for a following `run`. */
  claim(): this {
    this.#claimed++;
    return this;
  }

  /** Runs one generation in a claimed thread. Returning from the iteration, or the signal, aborts the run. */
  async *run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    const id = this.#nextRun++;
    this.#claimed--;
    const run: Run = { batches: [], wake: () => {}, done: false };
    this.#runs.set(id, run);
    // Only upstreams read the client's own JSON. For a response that continues others, it is made when it is read.
    this.#send({ type: "run", run: id, request: { ...request, passthrough: undefined }, credit });
    const wake = () => run.wake();
    signal.addEventListener("abort", wake, { once: true });
    try {
      while (!signal.aborted) {
        const batch = run.batches.shift();
        if (batch) {
          this.#send({ type: "credit", run: id });
          yield batch;
        } else if (run.done) return;
        else if (this.#exited) {
          yield [exitEnd];
          return;
        } else await new Promise<void>((resolve) => (run.wake = resolve));
      }
      yield [{ type: "end", end: { kind: "client-gone" } }];
    } finally {
      signal.removeEventListener("abort", wake);
      if (!run.done && !this.#exited) this.#abort(id);
    }
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  /** Aborts a run. A program that computes without an `await` does not notice the signal, so its thread is terminated. */
  #abort(id: number): void {
    this.#send({ type: "abort", run: id });
    setTimeout(() => {
      if (this.#runs.has(id) && this.blocking) void this.#worker.terminate();
    }, abortTimeoutMs).unref();
  }

  #receive(message: FromWorker): void {
    if (message.type === "warning") this.#log?.(message.line, "warn");
    if (message.type !== "events" && message.type !== "done") return;
    const run = this.#runs.get(message.run);
    if (!run) return;
    if (message.type === "events") run.batches.push(message.events);
    else {
      run.done = true;
      this.#runs.delete(message.run);
      this.freed();
    }
    run.wake();
  }

  #exit(): void {
    this.#exited = true;
    for (const run of this.#runs.values()) run.wake();
    this.#runs.clear();
    this.freed();
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }
}

const exitEnd: GenerationEvent = {
  type: "end",
  end: {
    kind: "engine-error",
    failure: { message: "The program's thread ended while it was answering.", status: 503, kind: "unavailable" },
  },
};

function firstMessage(worker: Worker, path: string): Promise<FromWorker & { type: "ready" }> {
  return new Promise((resolve, reject) => {
    // `removeAllListeners` would also remove the worker's own listeners, without which no message arrives.
    const settle = () => {
      clearTimeout(timer);
      worker.off("message", onMessage).off("error", onError).off("exit", onExit);
    };
    const fail = (message: string, cause?: unknown) => {
      settle();
      void worker.terminate();
      reject(new ProgramLoadError(message, cause === undefined ? undefined : { cause }));
    };
    const onMessage = (message: FromWorker) => {
      if (message.type !== "ready")
        return fail(message.type === "failed" ? message.message : `${path} could not be loaded.`);
      settle();
      resolve(message);
    };
    const onError = (error: Error) => fail(`${path} could not be loaded: ${error.message}`, error);
    const onExit = (code: number) => fail(`${path} ended its process with code ${code} while it was loaded.`);
    const timer = setTimeout(() => fail(`${path} did not load within ${loadTimeoutMs / 1000} seconds.`), loadTimeoutMs);
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}
