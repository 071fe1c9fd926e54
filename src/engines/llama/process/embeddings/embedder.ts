import { FailureError } from "../../../../wire/core/failure.ts";
import { FairQueue, queueFull } from "../../../lifecycle/fair-queue.ts";
import { sharedBatchSize, type PrefillLimits } from "../batch/plan.ts";
import { DecodeCosts } from "../batch/decode-costs.ts";
import type { NativeEmbeddingContext } from "../c-api/native-context.ts";

/** What the embedder needs of a context. */
export type EmbeddingContext = Pick<
  NativeEmbeddingContext,
  "batch" | "batchSize" | "sequences" | "decode" | "abort" | "clear" | "pooled"
>;

export interface EmbedderOptions {
  /** Creates the context when there is the first text to embed. Throws `FailureError`, or an Error with a reason. */
  readonly open: () => EmbeddingContext;
  /** Of a batch with several texts. */
  readonly limits: PrefillLimits;
  /** Numbers to return for each text; absent: its whole vector. */
  readonly count?: number;
  /** Requests of one owner that may wait. Further ones are rejected. */
  readonly queueLimit: number;
  /** There is work to do. */
  readonly onWork: () => void;
  /** The number of open requests or a counter has changed. */
  readonly onChange: () => void;
  /** Milliseconds, for the duration of decodes. */
  readonly clock: () => number;
}

interface Job {
  readonly id: number;
  readonly owner: string | undefined;
  readonly results: Float32Array[];
  left: number;
  readonly resolve: (results: readonly Float32Array[] | null) => void;
  readonly reject: (error: unknown) => void;
}

/** One text of a request. */
interface Item {
  readonly job: Job;
  /** Index of the text in the request. */
  readonly at: number;
  readonly tokens: readonly number[];
}

/**
 * Embeds texts, as many in one batch as fit. The scheduler calls `step` between decodes of answers. Owners take turns, text by text, so
 * that a request with two thousand texts does not delay one with a single text.
 */
export class Embedder {
  readonly #options: EmbedderOptions;
  readonly #waiting = new FairQueue<Item>();
  readonly #jobs = new Map<number, Job>();
  readonly #costs = new DecodeCosts();
  #context: EmbeddingContext | undefined;
  /** A text that is longer than a batch, and the number of its tokens that were decoded. */
  #long: { readonly item: Item; readonly decoded: number } | undefined;
  /** The texts of the current decode. */
  #current: readonly Item[] = [];
  #decodes = 0;
  #tokens = 0;

  constructor(options: EmbedderOptions) {
    this.#options = options;
  }

  get hasWork(): boolean {
    return this.#long !== undefined || this.#waiting.length > 0;
  }

  /** Number of open requests. */
  get open(): number {
    return this.#jobs.size;
  }

  /** Running totals. */
  get counters(): { readonly embeddingPasses: number; readonly embeddedTokens: number } {
    return { embeddingPasses: this.#decodes, embeddedTokens: this.#tokens };
  }

  /**
   * Embeds texts, given as their tokens. Resolves with `null` if the request is cancelled. Rejects with `FailureError`, with 429 if too many
   * requests wait.
   */
  add(
    id: number,
    texts: readonly (readonly number[])[],
    owner: string | undefined,
  ): Promise<readonly Float32Array[] | null> {
    const ofOwner = [...this.#jobs.values()].filter((job) => job.owner === owner).length;
    // One of them is running.
    if (ofOwner > this.#options.queueLimit)
      return Promise.reject(new FailureError(queueFull(ofOwner - 1, "requests for embeddings")));
    return new Promise((resolve, reject) => {
      const job: Job = { id, owner, results: [], left: texts.length, resolve, reject };
      this.#jobs.set(id, job);
      for (const [at, tokens] of texts.entries()) this.#waiting.push({ job, at, tokens }, owner);
      this.#options.onChange();
      this.#options.onWork();
    });
  }

  cancel(id: number): void {
    const job = this.#jobs.get(id);
    if (!job) return;
    this.#end(job);
    job.resolve(null);
    if (this.#current.length > 0 && this.#current.every((item) => !this.#isWanted(item))) this.#context?.abort();
  }

  /** Decodes one batch, if there is work. `othersWait`: a small one, as far as texts can be split. */
  async step(othersWait: boolean): Promise<void> {
    let items: readonly Item[] = [];
    try {
      this.#context ??= this.#options.open();
      const context = this.#context;
      if (this.#long && !this.#isWanted(this.#long.item)) this.#clear(context);
      const { limits } = this.#options;
      const max = Math.min(context.batchSize, othersWait ? sharedBatchSize(this.#costs, limits) : limits.maxTokens);
      const long = this.#long;
      items = long ? [long.item] : this.#take(max, context.sequences);
      const [first] = items;
      if (!first) return;
      this.#fill(context, items, long?.decoded ?? 0, othersWait ? max : context.batchSize);
      await this.#decode(context, items, long?.decoded ?? 0);
    } catch (error) {
      if (this.#context) this.#clear(this.#context);
      for (const { job } of items.length > 0 ? items : [...this.#waiting]) this.#fail(job, error);
    }
  }

  /** Takes the next texts, as many as fit, but at least one. */
  #take(maxTokens: number, maxItems: number): readonly Item[] {
    const items: Item[] = [];
    let tokens = 0;
    for (const item of this.#waiting) {
      tokens += item.tokens.length;
      if (items.length > 0 && tokens > maxTokens) break;
      items.push(item);
      if (items.length === maxItems || tokens >= maxTokens) break;
    }
    for (const item of items) this.#waiting.take(item);
    return items;
  }

  #fill({ batch, batchSize }: EmbeddingContext, items: readonly Item[], from: number, max: number): void {
    batch.clear();
    for (const [sequence, { tokens }] of items.entries()) {
      // Only a text that is longer than a batch can be decoded in chunks.
      const end = tokens.length <= batchSize ? tokens.length : Math.min(tokens.length, from + max);
      for (let at = from; at < end; at++) batch.add(tokens[at] ?? 0, at, sequence, true);
    }
  }

  async #decode(context: EmbeddingContext, items: readonly Item[], from: number): Promise<void> {
    const { length } = context.batch;
    const started = this.#options.clock();
    this.#current = items;
    const done = await context.decode().finally(() => (this.#current = []));
    if (!done) return this.#clear(context);
    const ms = this.#options.clock() - started;
    this.#costs.observe({ answers: 0, round: 0, promptTokens: length, draftTokens: 0 }, ms);
    this.#decodes++;
    this.#tokens += length;
    this.#options.onChange();
    const [first] = items;
    const decoded = from + length;
    if (items.length === 1 && first && decoded < first.tokens.length) {
      this.#long = { item: first, decoded };
      return;
    }
    for (const [sequence, { job, at }] of items.entries()) {
      if (this.#jobs.get(job.id) !== job) continue;
      const vector = context.pooled(sequence, this.#options.count);
      if (!vector.every((number) => Number.isFinite(number))) throw new Error("it computes what is not a number");
      job.results[at] = vector;
      if (--job.left > 0) continue;
      this.#jobs.delete(job.id);
      this.#options.onChange();
      job.resolve(job.results);
    }
    this.#clear(context);
  }

  #clear(context: EmbeddingContext): void {
    context.clear();
    this.#long = undefined;
  }

  #isWanted({ job }: Item): boolean {
    return this.#jobs.get(job.id) === job;
  }

  #fail(job: Job, error: unknown): void {
    if (this.#jobs.get(job.id) !== job) return;
    this.#end(job);
    const message = `The model failed: ${error instanceof Error ? error.message : String(error)}.`;
    job.reject(error instanceof FailureError ? error : new FailureError({ kind: "internal", status: 500, message }));
  }

  #end(job: Job): void {
    this.#jobs.delete(job.id);
    this.#waiting.dropWhere((item) => item.job === job);
    this.#options.onChange();
  }
}

/** The main loop of a model that only computes embeddings, in place of the scheduler. */
export class EmbeddingLoop {
  readonly #embedder: Pick<Embedder, "hasWork" | "step">;
  #wake: (() => void) | undefined;
  #step = 0;

  constructor(embedder: Pick<Embedder, "hasWork" | "step">) {
    this.#embedder = embedder;
  }

  /** The number of the current step; `null` while the loop waits for work. */
  get turn(): number | null {
    return this.#wake ? null : this.#step;
  }

  /** Wakes the loop, because there may be work. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Never returns. */
  async run(): Promise<never> {
    for (;;) {
      this.#step++;
      if (this.#embedder.hasWork) await this.#embedder.step(false);
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
