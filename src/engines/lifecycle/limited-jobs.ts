import type { ChildProcess } from "node:child_process";
import { FailureError } from "../../wire/core/failure.ts";
import { FairQueue } from "./fair-queue.ts";
import { howItEnded, type ProcessLimits, startLimitedProcess } from "./limited-process.ts";

/** For whom a job is done. */
export interface JobOrigin {
  /** The owner of the client's key; absent: clients have no keys. */
  readonly owner?: string | undefined;
  /** Aborts when the client has left: the job is then not begun, or its process is ended. */
  readonly signal?: AbortSignal | undefined;
}

export interface LimitedJobsOptions {
  /** The compiled module that does the jobs; see `FromJobProcess`. */
  readonly module: URL;
  readonly limits: ProcessLimits;
  /** The most processes. Each is for one owner at a time, and an owner has one at a time. */
  readonly processes: number;
  /** Starts a process; default: `startLimitedProcess`. */
  readonly start?: (module: URL, limits: ProcessLimits) => ChildProcess;
}

/** What a process sends for each job: that it begins, when everything that the job needs is loaded, and then an answer. */
export type FromJobProcess =
  | { readonly type: "begun" }
  /** `isLarge`: the process holds much memory, and is not used again. */
  | { readonly type: "done"; readonly value: unknown; readonly isLarge: boolean }
  /** Why the job cannot be done, as the end of a sentence: "it has no text". */
  | { readonly type: "failed"; readonly reason: string };

/** The jobs of one owner, and those of all owners, that may wait. */
const maxWaitingOfOwner = 16;
const maxWaiting = 256;
/** How long a process may take to start, and to load what a job needs, in milliseconds: a machine may be busy. */
const startMs = 60_000;
/** How long a process waits for a next job, in milliseconds. */
const idleMs = 30_000;

interface Pending {
  readonly job: unknown;
  readonly limitMs: number;
  readonly owner: string;
  settle(result: { readonly value: unknown } | { readonly error: unknown }): void;
}

/**
 * Does jobs on files of strangers in limited processes. Owners take turns, and an owner has one process at a time, so that the slow files of
 * one owner leave a process to the others. A job that takes too long or too much memory costs its process; the next job gets
 * another one. No process starts before the first job; an idle one ends after half a minute.
 */
export class LimitedJobs {
  readonly #options: LimitedJobsOptions;
  readonly #waiting = new FairQueue<Pending>();
  readonly #running = new Map<Pending, JobProcess>();
  readonly #idle: JobProcess[] = [];
  /** The owner of the job that has ended last. */
  #last: string | undefined;

  constructor(options: LimitedJobsOptions) {
    this.#options = options;
  }

  /**
   * Resolves with the value of a job that takes at most `limitMs` from when it begins. Rejects with an Error whose message is the reason,
   * with `FailureError` (429) if too many jobs wait, and with the reason of `signal`.
   */
  run(job: unknown, limitMs: number, { owner = "", signal }: JobOrigin = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason as Error);
      if (this.#waiting.lengthOf(owner) >= maxWaitingOfOwner || this.#waiting.length >= maxWaiting)
        return reject(tooManyWait());
      const leave = (): void => this.#leave(pending, signal?.reason);
      const pending: Pending = {
        job,
        limitMs,
        owner,
        settle: (result) => {
          signal?.removeEventListener("abort", leave);
          if ("value" in result) resolve(result.value);
          else reject(result.error as Error);
        },
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(pending, owner);
      this.#next();
    });
  }

  /** Begins the next jobs, as long as there are processes for them. */
  #next(): void {
    while (this.#running.size < this.#options.processes) {
      const pending = this.#nextPending();
      if (!pending) return;
      this.#waiting.take(pending);
      const child = this.#idle.pop() ?? new JobProcess(this.#options);
      this.#running.set(pending, child);
      child.run(pending, (result, isUsable) => {
        if (this.#running.get(pending) !== child) return;
        this.#running.delete(pending);
        this.#last = pending.owner;
        if (isUsable) this.#keep(child);
        else child.end();
        pending.settle(result);
        this.#next();
      });
    }
  }

  /** The first waiting job, in the order of turns, of an owner without a process, and not of the owner that had the last one if others wait. */
  #nextPending(): Pending | undefined {
    const busy = new Set([...this.#running.keys()].map(({ owner }) => owner));
    let ofLast: Pending | undefined;
    for (const pending of this.#waiting) {
      if (busy.has(pending.owner)) continue;
      if (pending.owner !== this.#last) return pending;
      ofLast ??= pending;
    }
    return ofLast;
  }

  #keep(child: JobProcess): void {
    this.#idle.push(child);
    child.rest(() => {
      const at = this.#idle.indexOf(child);
      if (at !== -1) this.#idle.splice(at, 1);
    });
  }

  #leave(pending: Pending, error: unknown): void {
    const child = this.#running.get(pending);
    this.#running.delete(pending);
    this.#waiting.drop(pending);
    child?.end();
    pending.settle({ error });
    this.#next();
  }
}

type Finish = (result: { readonly value: unknown } | { readonly error: unknown }, isUsable: boolean) => void;

/** A process that does one job at a time. */
class JobProcess {
  readonly #child: ChildProcess;
  #timer: NodeJS.Timeout | undefined;
  #pending: Pending | undefined;
  #finish: Finish = () => {};
  #onEnd = (): void => {};

  constructor({ module, limits, start = startLimitedProcess }: LimitedJobsOptions) {
    this.#child = start(module, limits)
      .on("message", (message: FromJobProcess) => this.#receive(message))
      .on("exit", (code, signal) => this.#gone(howItEnded(code, signal, limits)))
      .on("error", (error) => this.#gone(`its process cannot be started: ${error.message}`));
  }

  run(pending: Pending, finish: Finish): void {
    clearTimeout(this.#timer);
    this.#pending = pending;
    this.#finish = finish;
    this.#child.ref();
    this.#child.channel?.ref();
    this.#timer = setTimeout(() => this.#fail("its process did not start"), startMs);
    // A channel that is closed reports its error by the end of the process.
    this.#child.send(pending.job as object, () => {});
  }

  /** Waits for a next job, without keeping the server's process. `onEnd`: the process has ended meanwhile. */
  rest(onEnd: () => void): void {
    this.#onEnd = onEnd;
    this.#child.unref();
    this.#child.channel?.unref();
    this.#timer = setTimeout(() => this.end(), idleMs).unref();
  }

  /** Ends the process. Its job is not reported. */
  end(): void {
    clearTimeout(this.#timer);
    this.#pending = undefined;
    this.#child.kill("SIGKILL");
    this.#onEnd();
  }

  #receive(message: FromJobProcess): void {
    const pending = this.#pending;
    if (!pending) return;
    clearTimeout(this.#timer);
    if (message.type === "begun") {
      const { limitMs } = pending;
      this.#timer = setTimeout(() => this.#fail(`it took longer than ${limitMs / 1000} seconds`), limitMs);
    } else {
      this.#pending = undefined;
      if (message.type === "done") this.#finish({ value: message.value }, !message.isLarge);
      else this.#finish({ error: new Error(message.reason) }, true);
    }
  }

  #gone(reason: string): void {
    this.#onEnd();
    this.#fail(reason);
  }

  #fail(reason: string): void {
    clearTimeout(this.#timer);
    if (!this.#pending) return;
    this.#pending = undefined;
    this.#finish({ error: new Error(reason) }, false);
  }
}

function tooManyWait(): FailureError {
  return new FailureError({
    message: "Too many files and images wait to be read. Please retry after a moment.",
    status: 429,
    kind: "overloaded",
    param: null,
    code: "rate_limit_exceeded",
    retryAfterSeconds: 5,
  });
}
