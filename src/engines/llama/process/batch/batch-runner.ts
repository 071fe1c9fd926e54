import type { DecodeResult, NativeContext } from "../c-api/native-context.ts";
import type { Batch, BatchShare } from "./batch-planner.ts";

/** A decode that is expected to take longer runs in another thread, so that this one receives requests and cancellations. Milliseconds. */
const minAsyncMs = 20;
/** A decode is aborted for tasks that are still wanted only if more than this is left of it, in milliseconds. */
const minAbortMs = 50;

/** A decode is aborted to decode it together with what has just arrived if at most this share of its time is lost, all such aborts included. */
const maxLostShare = 1 / 8;

/** Decodes batches, measures how long that takes, and aborts a decode that is no longer wanted. */
export class BatchRunner {
  readonly #context: NativeContext;
  readonly #clock: () => number;
  /** The decode in the other thread. */
  #current: { readonly batch: Batch; readonly started: number; readonly expectedEnd: number } | undefined;
  /** The last decode in the other thread was aborted. */
  #wasAborted = false;
  /** Milliseconds of decodes that `abortIfEarly` aborted since the last complete decode. */
  #lostMs = 0;

  /** `clock`: milliseconds. */
  constructor(context: NativeContext, clock: () => number) {
    this.#context = context;
    this.#clock = clock;
  }

  /** The batch that is being decoded in another thread. Until that ends, the context's KV cache must not be accessed. */
  get current(): Batch | undefined {
    return this.#current?.batch;
  }

  /**
   * Decodes the context's batch. Returns the result and the duration of the decode in milliseconds. Throws an Error with llama.cpp's
   * reason.
   */
  async decode(batch: Batch, expectedMs: number): Promise<{ readonly result: DecodeResult; readonly ms: number }> {
    if (expectedMs < minAsyncMs) {
      // Messages are received between decodes.
      await new Promise((resolve) => setImmediate(resolve));
      const started = this.#clock();
      this.#lostMs = 0;
      return { result: this.#context.decode(), ms: this.#clock() - started };
    }
    const started = this.#clock();
    this.#current = { batch, started, expectedEnd: started + expectedMs };
    try {
      const result = await this.#context.decodeAsync();
      this.#wasAborted = result === "aborted";
      if (!this.#wasAborted) this.#lostMs = 0;
      return { result, ms: this.#clock() - started };
    } finally {
      this.#current = undefined;
    }
  }

  /** Aborts the current decode if it is not worth completing after a request was cancelled. */
  abortIfUnwanted(): void {
    if (this.#current && this.#isUnwanted(this.#current)) this.#context.abort();
  }

  /**
   * Aborts the current decode, which other work waits for, if its remaining time exceeds both `maxMs` milliseconds and its elapsed time.
   * Returns whether it was aborted.
   */
  abortIfLong(maxMs: number): boolean {
    if (!this.#current || this.#context.model.isRecurrent) return false;
    const { started, expectedEnd } = this.#current;
    const now = this.#clock();
    if (expectedEnd - now <= Math.max(maxMs, now - started)) return false;
    this.#context.abort();
    return true;
  }

  /**
   * Aborts the current decode if it has just started. The lost time is limited until a decode completes, so that clients that connect and
   * disconnect cannot hold up the others. Returns whether it was aborted.
   */
  abortIfEarly(): boolean {
    if (!this.#current || this.#context.model.isRecurrent) return false;
    const { started, expectedEnd } = this.#current;
    const lostMs = this.#lostMs + this.#clock() - started;
    if (lostMs > (expectedEnd - started) * maxLostShare) return false;
    this.#lostMs = lostMs;
    this.#context.abort();
    return true;
  }

  /**
   * All tasks in the batch are cancelled; or most of its tokens are, and enough time is left to decode the others again. The latter not
   * twice in a row: clients that connect and disconnect must not hold up the others.
   */
  #isUnwanted({ batch: { shares }, expectedEnd }: { readonly batch: Batch; readonly expectedEnd: number }): boolean {
    const cancelled = shares.filter(({ task }) => task.request.cancelled);
    if (cancelled.length === shares.length) return true;
    if (this.#wasAborted || this.#context.model.isRecurrent) return false;
    return 2 * tokensOf(cancelled) >= tokensOf(shares) && expectedEnd - this.#clock() > minAbortMs;
  }
}

function tokensOf(shares: readonly BatchShare[]): number {
  return shares.reduce((sum, { chunk }) => sum + chunk.tokens.length, 0);
}

const none = {
  decodeSteps: 0,
  generatedTokens: 0,
  promptTokens: 0,
  cachedTokens: 0,
  draftedTokens: 0,
  acceptedTokens: 0,
};

/** Running totals of what was decoded. */
export class DecodeCounters {
  readonly #counters = { ...none };

  get counters(): Readonly<typeof none> {
    return this.#counters;
  }

  /** A task has started with this number of prompt tokens in the KV cache. */
  started(cachedTokens: number): void {
    this.#counters.cachedTokens += cachedTokens;
  }

  /** A batch was decoded; `sample` samples the tokens that follow. */
  decoded({ promptTokens, draftTokens, shares }: Batch, sample: () => void): void {
    const generated = (): number => shares.reduce((sum, { task }) => sum + task.answer.counts.generated, 0);
    const accepted = (): number => shares.reduce((sum, { task }) => sum + task.drafts.acceptedTokens, 0);
    const before = { generated: generated(), accepted: accepted() };
    sample();
    const counters = this.#counters;
    counters.generatedTokens += generated() - before.generated;
    counters.acceptedTokens += accepted() - before.accepted;
    counters.decodeSteps++;
    counters.promptTokens += promptTokens;
    counters.draftedTokens += draftTokens;
  }
}
