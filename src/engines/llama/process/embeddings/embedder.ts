import { FailureError } from "../../../../core/failure.ts";
import { FairQueue } from "../../../lifecycle/fair-queue.ts";
import type { NativeEmbeddingContext } from "../c-api/native-context.ts";
import { PrefillBudget } from "../batch/prefill-budget.ts";
import { queueFull } from "../slot/task-queue.ts";

/** A context in which texts are embedded, as the embedder uses it. */
export type EmbeddingContext = Pick<
  NativeEmbeddingContext,
  "batch" | "batchSize" | "sequences" | "decode" | "abort" | "clear" | "pooled"
>;

export interface EmbedderOptions {
  /** Makes the context, with the first text that there is to embed. Throws `FailureError`, or an Error with a reason. */
  readonly open: () => EmbeddingContext;
  /** So many tokens go into one pass where it is several texts that they belong to. */
  readonly together: number;
  /** Numbers that are wanted of each text; absent: its whole vector. */
  readonly count?: number;
  /** Requests of one owner that may wait; one more is refused. */
  readonly queueLimit: number;
  /** There is something to do. */
  readonly onWork: () => void;
  /** What waits, or was done, has become more or less. */
  readonly onChange: () => void;
  /** Milliseconds that computing has taken so far. */
  readonly clock: () => number;
}

interface Job {
  readonly id: number;
  readonly owner: string | undefined;
  readonly results: Float32Array[];
  left: number;
  readonly settle: (results: readonly Float32Array[] | null) => void;
  readonly fail: (error: unknown) => void;
}

/** One text of a request. */
interface Item {
  readonly job: Job;
  /** Its place in the request. */
  readonly at: number;
  readonly tokens: readonly number[];
}

/**
 * Embeds texts, as many in one pass as have room. Between the passes the model does other things: whoever drives it calls `pass`. Owners
 * take turns, text by text, so that one with two thousand texts does not hold up another one with a question.
 */
export class Embedder {
  readonly #options: EmbedderOptions;
  readonly #waiting = new FairQueue<Item>();
  readonly #jobs = new Map<number, Job>();
  readonly #budget: PrefillBudget;
  #context: EmbeddingContext | undefined;
  /** A text that is longer than a pass, and how much of it was read. */
  #long: { readonly item: Item; readonly read: number } | undefined;
  /** Whose pass is under way. */
  #underWay: readonly Item[] = [];
  #passes = 0;
  #tokens = 0;

  constructor(options: EmbedderOptions) {
    this.#options = options;
    this.#budget = new PrefillBudget(options.together);
  }

  /** There is something to do. */
  get hasWork(): boolean {
    return this.#long !== undefined || this.#waiting.length > 0;
  }

  /** Requests that are not answered. */
  get open(): number {
    return this.#jobs.size;
  }

  /** Running totals. */
  get counters(): { readonly embeddingPasses: number; readonly embeddedTokens: number } {
    return { embeddingPasses: this.#passes, embeddedTokens: this.#tokens };
  }

  /** Embeds texts, given as their tokens. Resolves with null when it was cancelled. Rejects with `FailureError`, 429 when too many wait. */
  add(
    id: number,
    texts: readonly (readonly number[])[],
    owner: string | undefined,
  ): Promise<readonly Float32Array[] | null> {
    const ofOwner = [...this.#jobs.values()].filter((job) => job.owner === owner).length;
    // One of them is being worked at.
    if (ofOwner > this.#options.queueLimit)
      return Promise.reject(new FailureError(queueFull(ofOwner - 1, "requests for embeddings")));
    return new Promise((settle, fail) => {
      const job: Job = { id, owner, results: [], left: texts.length, settle, fail };
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
    job.settle(null);
    if (this.#underWay.length > 0 && this.#underWay.every((item) => !this.#isWanted(item))) this.#context?.abort();
  }

  /** Makes one pass, where there is something to do. `othersWait`: it is to be short, as far as texts can be parted. */
  async step(othersWait: boolean): Promise<void> {
    let items: readonly Item[] = [];
    try {
      this.#context ??= this.#options.open();
      const context = this.#context;
      if (this.#long && !this.#isWanted(this.#long.item)) this.#forget(context);
      const room = Math.min(context.batchSize, othersWait ? this.#budget.tokens : this.#options.together);
      const long = this.#long;
      items = long ? [long.item] : this.#choose(room, context.sequences);
      const [first] = items;
      if (!first) return;
      this.#fill(context, items, long?.read ?? 0, othersWait ? room : context.batchSize);
      await this.#evaluate(context, items, long?.read ?? 0);
    } catch (error) {
      if (this.#context) this.#forget(this.#context);
      for (const { job } of items.length > 0 ? items : [...this.#waiting]) this.#fail(job, error);
    }
  }

  /** The next texts, as many as have room; one at least. */
  #choose(room: number, most: number): readonly Item[] {
    const items: Item[] = [];
    let tokens = 0;
    for (const item of this.#waiting) {
      tokens += item.tokens.length;
      if (items.length > 0 && tokens > room) break;
      items.push(item);
      if (items.length === most || tokens >= room) break;
    }
    for (const item of items) this.#waiting.take(item);
    return items;
  }

  #fill({ batch, batchSize }: EmbeddingContext, items: readonly Item[], from: number, room: number): void {
    batch.clear();
    for (const [sequence, { tokens }] of items.entries()) {
      // Only a text that is longer than a pass can be read in pieces.
      const end = tokens.length <= batchSize ? tokens.length : Math.min(tokens.length, from + room);
      for (let at = from; at < end; at++) batch.add(tokens[at] ?? 0, at, sequence, true);
    }
  }

  async #evaluate(context: EmbeddingContext, items: readonly Item[], from: number): Promise<void> {
    const { length } = context.batch;
    const started = this.#options.clock();
    this.#underWay = items;
    const done = await context.decode().finally(() => (this.#underWay = []));
    if (!done) return this.#forget(context);
    this.#passes++;
    this.#tokens += length;
    this.#options.onChange();
    this.#budget.observe(length, this.#options.clock() - started);
    const [first] = items;
    const read = from + length;
    if (items.length === 1 && first && read < first.tokens.length) {
      this.#long = { item: first, read };
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
      job.settle(job.results);
    }
    this.#forget(context);
  }

  /** Nothing of what was read is needed any more. */
  #forget(context: EmbeddingContext): void {
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
    job.fail(error instanceof FailureError ? error : new FailureError({ kind: "internal", status: 500, message }));
  }

  #end(job: Job): void {
    this.#jobs.delete(job.id);
    this.#waiting.dropWhere((item) => item.job === job);
    this.#options.onChange();
  }
}

/** Drives a model that only makes embeddings, as the scheduler does one that generates. */
export class EmbeddingLoop {
  readonly #embedder: Pick<Embedder, "hasWork" | "step">;
  #wake: (() => void) | undefined;
  #turn = 0;

  constructor(embedder: Pick<Embedder, "hasWork" | "step">) {
    this.#embedder = embedder;
  }

  /** The number of the pass that it is at; null: it waits for work. */
  get turn(): number | null {
    return this.#wake ? null : this.#turn;
  }

  /** There may be something to do. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Runs for ever. */
  async run(): Promise<never> {
    for (;;) {
      this.#turn++;
      if (this.#embedder.hasWork) await this.#embedder.step(false);
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}
