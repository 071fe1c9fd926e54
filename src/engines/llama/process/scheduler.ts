import type { LlamaContextSequence, Token } from "node-llama-cpp";
import type { SlotState } from "../../../generation/engine.ts";
import type { GenerationFailure } from "../../../generation/event.ts";
import type { CacheMiss } from "../../../generation/cache-miss.ts";
import { FailureError } from "../../../generation/failure.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import { FairQueue } from "../../lifecycle/fair-queue.ts";
import type { ModelState, StepMessage } from "../protocol.ts";
import type { BatchGate } from "./batch-gate.ts";
import { CacheWatch } from "./cache-watch.ts";
import type { Choice, ChoiceSurroundings } from "./choice.ts";
import { PrefillBudget } from "./prefill-budget.ts";
import { queueFull } from "./queue-full.ts";
import { RequestRun } from "./request-run.ts";
import { copyState, retryCopyMs, worthACopy } from "./state-copy.ts";
import { StepTurns } from "./step-turns.ts";

export interface SchedulerOptions {
  readonly around: ChoiceSurroundings;
  /** One for each slot, in the order of their ids. */
  readonly sequences: readonly LlamaContextSequence[];
  readonly gate: BatchGate;
  readonly queueLimit: number;
  readonly batchSize: number;
  /** Sequences may be given what others know, through files. */
  readonly copiesStates: boolean;
  readonly report: (message: StepMessage) => void;
  /** A request's prompt is not in the cache, as much of it could be; told before its first events. */
  readonly missed: (id: number, miss: CacheMiss) => void;
  /** What happens before the scheduler: requests in preparation, grammars made so far. */
  readonly preparing: () => { readonly waiting: number; readonly grammarsMade: number };
  /** Uniform in [0, 1), for requests without a seed. */
  readonly chance: () => number;
}

interface Slot {
  readonly sequence: LlamaContextSequence;
  job: Job | undefined;
}

interface Job {
  readonly request: RequestRun;
  readonly choice: Choice;
  readonly owner: string | undefined;
}

/**
 * Drives all sequences in lockstep, which is what makes batching pay: in each step every answer that may run on advances by a token, in
 * ascending slot order, and all of them are awaited. llama.cpp evaluates neighbouring sequences in one pass, and splits a batch at each
 * gap, so the lowest free slot is taken first.
 *
 * Prompts are read in steps of their own, in pieces of about 50 ms, so that neither answers nor a cancellation wait long for them. A new
 * choice goes to the free slot that already knows most of its prompt where that saves more than a gap costs. A choice whose reader is
 * too far behind pauses; a cancelled one is gone after the step in flight.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #slots: readonly Slot[];
  readonly #waiting = new FairQueue<Job>();
  readonly #requests = new Map<number, RequestRun>();
  readonly #budget: PrefillBudget;
  readonly #turns = new StepTurns();
  readonly #watch: CacheWatch;
  #wake: (() => void) | undefined;
  #changed = false;
  #turn = 0;
  /** No state is copied before this time, because a copy has just failed. */
  #copiesAgainAt = 0;
  #waitsForWork = false;
  #decodeSteps = 0;
  #generatedTokens = 0;
  #promptTokens = 0;
  #cachedTokens = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { vocabulary } = options.around;
    this.#watch = new CacheWatch((token) => vocabulary.bytes(token as Token), options.missed);
    this.#slots = options.sequences.map((sequence) => ({ sequence, job: undefined }));
    this.#budget = new PrefillBudget(options.batchSize - options.sequences.length);
  }

  /**
   * Takes a request with its prompts' tokens: it waits in the queue, or is refused at once. `owner`: whose it is; each has a queue, as long
   * as the others'.
   */
  add(message: PreparedRequest, prompts: readonly (readonly Token[])[], owner?: string): void {
    try {
      const run = new RequestRun(this.#options.around, message, prompts, this.#options.chance);
      const free = this.#slots.filter((slot) => !slot.job).length;
      // A request that finds slots free is always taken, however many choices it has.
      const waiting = this.#waiting.lengthOf(owner);
      if (waiting >= free && waiting + run.choices.length - free > this.#options.queueLimit)
        throw new FailureError(queueFull(waiting));
      this.#requests.set(run.id, run);
      for (const choice of run.choices) this.#waiting.push({ request: run, choice, owner }, owner);
      this.#stir();
    } catch (error) {
      const failed: GenerationFailure = { kind: "internal", message: String(error), status: 500 };
      this.refuse(message.id, error instanceof FailureError ? error.failure : failed);
    }
  }

  /** Ends a request that was not accepted. */
  refuse(id: number, failure: GenerationFailure): void {
    this.#report([[id, 0, [{ type: "end", end: { kind: "rejected", failure } }]]]);
  }

  /** Tells the server how busy the model is; every step does so, too. */
  tellState(): void {
    this.#report([]);
  }

  /** What each slot does now. */
  slots(): SlotState[] {
    return this.#slots.map(({ job }, id) => ({
      id,
      busy: job !== undefined,
      ...(job && { task: job.request.id }),
      contextSize: this.#options.around.contextSize,
      ...(job?.choice.state ?? idle),
    }));
  }

  cancel(id: number): void {
    const request = this.#requests.get(id);
    if (!request) return;
    request.cancelled = true;
    this.#stir();
  }

  taken(id: number, tokens: number): void {
    this.#requests.get(id)?.taken(tokens);
    this.#stir();
  }

  /** The number of the loop's current turn, a new one for every step; null: it waits for work. */
  get turn(): number | null {
    return this.#waitsForWork ? null : this.#turn;
  }

  /** Runs for ever. */
  async run(): Promise<never> {
    for (;;) {
      this.#turn++;
      await this.#sweep();
      await this.#admit();
      const active = this.#slots.filter(({ job }) => job && !job.choice.finished && job.request.mayRunOn);
      if (active.length > 0) await this.#step(active);
      else if (!this.#changed) {
        this.#waitsForWork = true;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#waitsForWork = false;
      }
      this.#changed = false;
    }
  }

  #stir(): void {
    this.#changed = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Frees the slots of what has finished or was cancelled. */
  async #sweep(): Promise<void> {
    let freed = false;
    for (const slot of this.#slots) {
      const { job } = slot;
      if (!job || !(job.choice.finished || job.request.cancelled || job.request.ended)) continue;
      await job.choice.release();
      slot.job = undefined;
      freed = true;
    }
    if (this.#waiting.dropWhere(({ request }) => request.cancelled || request.ended)) freed = true;
    for (const [id, request] of this.#requests) if (request.cancelled || request.ended) this.#requests.delete(id);
    if (freed) this.tellState();
  }

  /** Gives free slots to waiting choices, of one owner after the other, first come first served. */
  async #admit(): Promise<void> {
    for (;;) {
      const job = this.#next();
      const place = job && this.#placeFor(job.choice);
      if (!place) return;
      this.#waiting.take(job);
      const known = this.#slots.map(({ sequence }) => sequence.contextTokens);
      const missed = this.#watch.takes(this.#slots.indexOf(place.slot), job, known);
      place.slot.job = job;
      job.request.begins();
      await this.#attempt(job, async () => {
        if (place.copyFrom) await this.#copy(place.copyFrom, place.slot.sequence);
        await job.choice.begin(place.slot.sequence);
      });
      this.#cachedTokens += job.choice.cachedTokens;
      this.#watch.began(job.request.id, missed, job.choice.cachedTokens);
      // A prompt that is only given back is done before its first step.
      if (job.choice.finished) {
        this.#reportNews([place.slot]);
        this.#stir();
      }
    }
  }

  /** The choice that is to have the next free slot; undefined: there is none, or no slot. */
  #next(): Job | undefined {
    if (this.#waiting.length === 0 || this.#slots.every(({ job }) => job)) return undefined;
    for (const job of this.#waiting) if (!this.#waitsForSibling(job)) return job;
    return undefined;
  }

  /**
   * The lowest free slot, or the one that knows the prompt best if that saves enough tokens to be worth a gap; and the slot to copy from
   * where another one, busy or not, knows much more of the prompt.
   */
  #placeFor(choice: Choice): { slot: Slot; copyFrom: LlamaContextSequence | undefined } | undefined {
    const worthAGap = 32;
    let best: { slot: Slot; known: number } | undefined;
    let source: { sequence: LlamaContextSequence; known: number } | undefined;
    for (const slot of this.#slots) {
      const known = knownTokens(slot.sequence, choice.prompt);
      if (!slot.job && (!best || known >= best.known + worthAGap)) best = { slot, known };
      if (!source || known > source.known) source = { sequence: slot.sequence, known };
    }
    if (!best) return undefined;
    const copies = source && this.#mayShare(choice) && source.known >= best.known + worthACopy;
    return { slot: best.slot, copyFrom: copies ? source?.sequence : undefined };
  }

  /** Another choice of the same prompt is reading it just now: what it knows then is worth waiting for. */
  #waitsForSibling(job: Job): boolean {
    if (!this.#mayShare(job.choice)) return false;
    return this.#slots.some(
      ({ job: other }) =>
        other?.request === job.request &&
        other.choice.prompt === job.choice.prompt &&
        other.choice.nextWork.promptLeft >= worthACopy,
    );
  }

  /** Copies what a sequence knows. This only saves time: if it fails, the prompt is read again. */
  async #copy(from: LlamaContextSequence, to: LlamaContextSequence): Promise<void> {
    try {
      await copyState(from, to);
    } catch (error) {
      this.#copiesAgainAt = performance.now() + retryCopyMs;
      this.#options.around.log(`A prompt is read again, since its state could not be copied: ${String(error)}`, "warn");
      await to.clearHistory();
    }
  }

  #mayShare(choice: Choice): boolean {
    if (!this.#options.copiesStates || performance.now() < this.#copiesAgainAt) return false;
    return choice.usesCache && choice.prompt.length > worthACopy;
  }

  /** One batch: of prompts, or of one token for each answer. */
  async #step(active: readonly Slot[]): Promise<void> {
    const prompting = active.filter((slot) => slot.job && slot.job.choice.nextWork.promptLeft > 0);
    const answering = active.filter((slot) => slot.job?.choice.nextWork.promptLeft === 0);
    const readsPrompts = this.#turns.next(prompting.length, answering.length) === "prompts";
    const started = performance.now();
    const before = this.#totals(active);
    const prompted = await this.#together(readsPrompts ? prompting : answering);
    this.#decodeSteps++;
    this.#promptTokens += prompted;
    this.#budget.observe(prompted, performance.now() - started);
    this.#generatedTokens += this.#totals(active) - before;
    this.#reportNews(active);
  }

  /** Advances these slots in one batch and waits for all; how many prompt tokens were evaluated. */
  async #together(slots: readonly Slot[]): Promise<number> {
    const { gate } = this.#options;
    const work: Promise<void>[] = [];
    let allowance = this.#budget.tokens;
    let prompted = 0;
    let previous: string | undefined;
    gate.close();
    for (const { job } of slots) {
      if (!job) continue;
      const { promptLeft, kind } = job.choice.nextWork;
      if (promptLeft > 0 && allowance <= 0) break;
      const share = Math.min(promptLeft, allowance);
      allowance -= share;
      prompted += share;
      // Work of another kind takes another number of turns to reach the library's queue; the queue must be in slot order.
      if (previous !== undefined && kind !== previous) await gate.settled();
      previous = kind;
      work.push(this.#attempt(job, () => job.choice.step(share)));
    }
    await gate.settled();
    gate.open();
    await Promise.all(work);
    return prompted;
  }

  /** Does a job's work; when it fails, the job's request ends. */
  async #attempt(job: Job, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const message = `The model failed: ${error instanceof Error ? error.message : String(error)}`;
      const failed: GenerationFailure = { message, status: 500, kind: "internal" };
      const events = job.request.fail(error instanceof FailureError ? error.failure : failed);
      this.#report([[job.request.id, 0, events]]);
    }
  }

  #totals(active: readonly Slot[]): number {
    return active.reduce((sum, slot) => sum + (slot.job?.choice.generatedTokens ?? 0), 0);
  }

  #reportNews(active: readonly Slot[]): void {
    const results: StepMessage["results"][number][] = [];
    for (const request of new Set(active.map((slot) => slot.job?.request))) {
      if (!request || request.cancelled || request.ended) continue;
      const { tokens, events, written } = request.takeNews();
      if (events.length === 0 && tokens === 0) continue;
      results.push(written ? [request.id, tokens, events, written] : [request.id, tokens, events]);
    }
    if (results.length > 0) this.#report(results);
  }

  #report(results: StepMessage["results"]): void {
    this.#options.report({ type: "step", results, state: this.#state() });
  }

  #state(): ModelState {
    const { waiting, grammarsMade } = this.#options.preparing();
    return {
      busy: this.#slots.filter((slot) => slot.job).length,
      queued: this.#waiting.length + waiting,
      counters: {
        decodeSteps: this.#decodeSteps,
        generatedTokens: this.#generatedTokens,
        promptTokens: this.#promptTokens,
        cachedTokens: this.#cachedTokens,
        grammarsMade,
        vocabularyScans: this.#options.around.vocabulary.scans,
      },
    };
  }
}

const idle = { promptTokens: 0, cachedTokens: 0, evaluatedTokens: 0, generatedTokens: 0, tokensLeft: null };

function knownTokens(sequence: LlamaContextSequence, prompt: readonly number[]): number {
  const { firstDifferentIndex } = sequence.compareContextTokens(
    prompt as Parameters<typeof sequence.compareContextTokens>[0],
  );
  return firstDifferentIndex;
}
