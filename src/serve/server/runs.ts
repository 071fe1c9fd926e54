import { FailureError } from "../../wire/core/failure.ts";
import type { Run } from "./run.ts";

/** The maximum number of responses in the background, and of streams without a client: nothing else limits them. */
const maxRuns = 1000;
/** What all resumable streams keep together in a process, in characters. */
const maxKept = 64 * 1024 * 1024;

/** The runs of this process: responses in the background, and streams that a client may resume. */
export class Runs {
  /** In the order in which they began. */
  readonly #runs = new Map<string, Run>();
  #inBackground = 0;
  /** The streams that go on without a client, and those that have ended, in the order in which that happened. */
  readonly #lost = new Set<Run>();
  readonly #ended = new Set<Run>();
  /** The size of all streams, in characters. */
  #kept = 0;
  #isClosing = false;
  #idle: (() => void)[] = [];

  /** Finds a run of a client. */
  find(owner: string, id: string): Run | undefined {
    return this.#runs.get(keyOf(owner, id));
  }

  /**
   * Adds a run until it is forgotten: a client of the owner finds a response by its id, and a stream by the id of its request. Throws
   * `FailureError` 503 for a response if too many are generated.
   */
  add(owner: string, id: string, run: Run): void {
    if (!run.isResumable && this.#inBackground >= maxRuns) throw tooMany();
    const key = keyOf(owner, id);
    this.#runs.set(key, run);
    if (run.isResumable) run.onChange = this.#streamObserver(key, run);
    else {
      this.#inBackground++;
      run.onChange = () => {
        if (run.isForgotten && this.#forget(key, run)) this.#inBackground--;
      };
    }
  }

  #streamObserver(key: string, run: Run): () => void {
    let size = 0;
    const measure = (): void => {
      this.#kept += run.size - size;
      size = run.size;
    };
    return () => {
      measure();
      if (run.isForgotten) return void this.#forget(key, run);
      const isNewlyLost = run.isLost && !this.#lost.has(run);
      if (run.isLost) this.#lost.add(run);
      else this.#lost.delete(run);
      if (run.hasEnded) this.#ended.add(run);
      if (isNewlyLost && (this.#isClosing || this.#lost.size > maxRuns)) run.stop();
      // A stream that has just ended is not dropped before its reader has had a turn.
      else if (this.#kept > maxKept && !(run.hasEnded && run.hasReaders)) {
        this.#dropOldest();
        if (this.#kept > maxKept) run.dropRead();
        measure();
      }
    };
  }

  /** Drops streams until little enough is kept: those that have ended and are not read, those without a client, all ended. */
  #dropOldest(): void {
    const unread = [...this.#ended].filter(({ hasReaders }) => !hasReaders);
    for (const run of [...unread, ...this.#lost, ...this.#ended]) if (this.#kept > maxKept) run.stop();
  }

  /** The server closes: clients cannot come back, so streams without one end. */
  close(): void {
    this.#isClosing = true;
    for (const run of this.#lost) run.stop();
  }

  /** Resolves when the clients that opened the streams have received them, or have left. */
  async delivered(): Promise<void> {
    await Promise.all([...this.#runs.values()].map((run) => run.isResumable && run.done));
  }

  /** Ends all runs as failed. Resolves when all of them are forgotten. */
  stop(): Promise<void> {
    this.#isClosing = true;
    for (const run of this.#runs.values()) run.stop();
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#wakeIdle();
    });
  }

  #forget(key: string, run: Run): boolean {
    this.#lost.delete(run);
    this.#ended.delete(run);
    const wasHere = this.#runs.delete(key);
    this.#wakeIdle();
    return wasHere;
  }

  #wakeIdle(): void {
    if (this.#runs.size === 0) for (const wake of this.#idle.splice(0)) wake();
  }
}

function keyOf(owner: string, id: string): string {
  return `${owner} ${id}`;
}

function tooMany(): FailureError {
  return new FailureError({
    kind: "overloaded",
    message: "Too many responses are being generated in the background. Please try again later.",
    status: 503,
    param: null,
    code: null,
    retryAfterSeconds: 5,
  });
}
