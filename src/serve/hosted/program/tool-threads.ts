import { Worker } from "node:worker_threads";
import { FairQueue } from "../../../engines/lifecycle/fair-queue.ts";
import type { Hook, HookContext, HookPart, HookRequest } from "../../../wire/core/hook.ts";
import type { HostedProgramInput } from "../../../wire/core/hosted-program.ts";

/** A call of a hook: which of its functions, and what that gets. */
export interface HookCall {
  readonly member: keyof Hook;
  readonly input: HookRequest | HookPart;
  readonly context: HookContext;
}

type ToolInput = Omit<HostedProgramInput, "signal"> | HookCall;

/** How a thread starts. `isHook`: the module is a hook, and its results are sent as JSON. */
export interface ToolWorkerSetup {
  readonly path: string;
  readonly isHook?: boolean | undefined;
}

export type ToToolWorker = { readonly type: "run"; readonly input: ToolInput } | { readonly type: "abort" };

export type FromToolWorker =
  /** What the module exports for the model. */
  | {
      readonly type: "ready";
      readonly description?: unknown;
      readonly parameters?: unknown;
      /** The functions of a hook. */
      readonly members?: readonly (keyof Hook)[];
    }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "done"; readonly value: unknown }
  | {
      readonly type: "thrown";
      readonly message: string;
      /** Of the error that a hook threw. */
      readonly details?: {
        readonly name: string;
        readonly status?: unknown;
        readonly code?: unknown;
        readonly param?: unknown;
      };
      /** The thread has more garbage than others need: it is ended. */
      readonly isLast?: boolean;
      /** For the log: without the message, which may quote a conversation. */
      readonly cause?: string;
    };

/** Calls of one tool that run at the same time; further calls wait. */
const usualLimit = 8;
/** How long an aborted call may go on before its thread is ended, in milliseconds: it may compute without an `await`. */
const graceMs = 1000;

interface Thread {
  readonly worker: Worker;
  /** Receives the next message, or null when the thread has ended. */
  receive: (message: FromToolWorker | null) => void;
}

const threadEnded = { message: "its thread ended", details: undefined, cause: "its thread ended" };

/** Threads with a user's module, one for each call that runs: one that blocks or breaks its thread does not disturb the others. */
export class ToolThreads {
  readonly #setup: ToolWorkerSetup;
  readonly #limit: number;
  readonly #maxHeap: number | undefined;
  readonly #timeoutMs: number | undefined;
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();
  #running = 0;
  readonly #waiting = new FairQueue<() => void>();

  /**
   * `limit`: calls that run at the same time. `maxHeap`: of each thread, in MiB. `timeoutMs`: how long a call may run; it may wait longer for a
   * thread. A later one rejects with an Error named TimeoutError.
   */
  constructor(
    path: string,
    {
      limit = usualLimit,
      maxHeap,
      timeoutMs,
      isHook,
    }: { limit?: number; maxHeap?: number; timeoutMs?: number; isHook?: boolean } = {},
  ) {
    this.#setup = { path, isHook };
    this.#limit = limit;
    this.#maxHeap = maxHeap;
    this.#timeoutMs = timeoutMs;
  }

  /** Imports the module in a first thread. Rejects with an Error of one sentence. */
  async load(): Promise<FromToolWorker & { readonly type: "ready" }> {
    const { thread, ready } = await this.#start();
    this.#idle.push(thread);
    return ready;
  }

  /**
   * Runs a call. Rejects with the program's message, and with the signal's reason when it aborts. `owner`: where calls wait, owners take
   * turns.
   */
  async run(input: ToolInput, owner: string, signal: AbortSignal): Promise<unknown> {
    if (this.#running >= this.#limit) await this.#turn(owner, signal);
    else this.#running++;
    try {
      signal.throwIfAborted();
      const thread = this.#idle.pop() ?? (await this.#start()).thread;
      if (signal.aborted) this.#idle.push(thread);
      signal.throwIfAborted();
      return await this.#runIn(thread, input, signal);
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map(({ worker }) => worker.terminate()));
  }

  /** Resolves when a call that has ended gives its place to this one. */
  #turn(owner: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.drop(go);
        reject(signal.reason as Error);
      };
      if (signal.aborted) return leave();
      this.#waiting.push(go, owner);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #runIn(thread: Thread, input: ToolInput, signal: AbortSignal): Promise<unknown> {
    const { worker } = thread;
    return new Promise((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      const end = (reason: Error): void => {
        clearTimeout(late);
        worker.postMessage({ type: "abort" } satisfies ToToolWorker);
        timer = setTimeout(() => void worker.terminate(), graceMs).unref();
        reject(reason);
      };
      const abort = (): void => end(signal.reason as Error);
      const late =
        this.#timeoutMs === undefined
          ? undefined
          : setTimeout(() => end(new DOMException("it did not answer in time", "TimeoutError")), this.#timeoutMs);
      thread.receive = (message) => {
        clearTimeout(timer);
        clearTimeout(late);
        signal.removeEventListener("abort", abort);
        thread.receive = () => {};
        if (message?.type === "thrown" && message.isLast) void worker.terminate();
        else if (message !== null) this.#idle.push(thread);
        if (message?.type === "done") resolve(message.value);
        else {
          const { message: text, details, cause } = message?.type === "thrown" ? message : threadEnded;
          reject(Object.assign(new Error(text, { cause }), details));
        }
      };
      signal.addEventListener("abort", abort, { once: true });
      worker.postMessage({ type: "run", input } satisfies ToToolWorker);
    });
  }

  #start(): Promise<{ readonly thread: Thread; readonly ready: FromToolWorker & { readonly type: "ready" } }> {
    const worker = new Worker(new URL("./tool-worker.js", import.meta.url), {
      workerData: this.#setup,
      ...(this.#maxHeap !== undefined && { resourceLimits: { maxOldGenerationSizeMb: this.#maxHeap } }),
    });
    worker.unref();
    return new Promise((resolve, reject) => {
      const thread: Thread = {
        worker,
        receive: (message) => {
          thread.receive = () => {};
          if (message?.type === "ready") return resolve({ thread, ready: message });
          void worker.terminate();
          reject(
            new Error(
              message?.type === "failed"
                ? message.message
                : `${this.#setup.path} could not be loaded: its thread ended`,
            ),
          );
        },
      };
      this.#all.add(thread);
      worker.on("message", (message: FromToolWorker) => thread.receive(message));
      // Without a listener an uncaught exception in the program would end the server.
      worker.on("error", () => {});
      worker.on("exit", () => {
        this.#all.delete(thread);
        const at = this.#idle.indexOf(thread);
        if (at !== -1) this.#idle.splice(at, 1);
        thread.receive(null);
      });
    });
  }
}
