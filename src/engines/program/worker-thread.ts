import { Worker } from "node:worker_threads";
import type { ModelInfo } from "../../core/engine.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { Observe } from "../../core/observe.ts";
import { ProgramLoadError } from "./classify-program.ts";
import type { FromWorker, ToWorker, WorkerSetup } from "./worker-messages.ts";

/** Batches that may be under way to a slow reader before the program is held back. */
const credit = 16;
/** How long a module may take to load, and an aborted run to end, in milliseconds. */
const loadLimit = 60_000;
const abortLimit = 2_000;

interface Run {
  readonly batches: (readonly GenerationEvent[])[];
  wake: () => void;
  done: boolean;
}

/** One worker thread with a program loaded in it. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #log: Observe | undefined;
  readonly #runs = new Map<number, Run>();
  #nextRun = 0;
  #claimed = 0;
  #exited = false;
  /** Called when a run has really ended, or the thread has. */
  freed: () => void = () => {};
  readonly blocking: boolean;
  /** The models of an Engine; undefined for a program. */
  readonly models: readonly ModelInfo[] | undefined;

  private constructor(worker: Worker, ready: FromWorker & { type: "ready" }, log: Observe | undefined) {
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
  static async start(setup: WorkerSetup, log?: Observe): Promise<WorkerThread> {
    const worker = new Worker(new URL("./worker.js", import.meta.url), { workerData: setup });
    const ready = await firstMessage(worker, setup.path);
    return new WorkerThread(worker, ready, log);
  }

  get alive(): boolean {
    return !this.#exited;
  }

  /** Runs that have begun and not ended, and those that will begin in a moment. */
  get load(): number {
    return this.#runs.size + this.#claimed;
  }

  /** Says that `run` will be called: until then the thread counts as busy. */
  claim(): this {
    this.#claimed++;
    return this;
  }

  /** One generation, for which the thread was claimed. Leaving it early, or the signal, aborts the run. */
  async *run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    const id = this.#nextRun++;
    this.#claimed--;
    const run: Run = { batches: [], wake: () => {}, done: false };
    this.#runs.set(id, run);
    this.#send({ type: "run", run: id, request, credit });
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

  /** Asks a run to end. A program that computes without an `await` cannot notice, so its thread is terminated. */
  #abort(id: number): void {
    this.#send({ type: "abort", run: id });
    setTimeout(() => {
      if (this.#runs.has(id) && this.blocking) void this.#worker.terminate();
    }, abortLimit).unref();
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
    // Listeners are taken off one by one: removeAllListeners would take the worker's own, too, and no message would come any more.
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
    const timer = setTimeout(() => fail(`${path} did not load within ${loadLimit / 1000} seconds.`), loadLimit);
    worker.on("message", onMessage).on("error", onError).on("exit", onExit);
  });
}
