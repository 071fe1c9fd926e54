import type { LlamaContextSequence } from "node-llama-cpp";
import type { GenerationEvent } from "../../../generation/event.ts";
import { FailureError } from "../../../generation/failure.ts";
import type { GenerateMessage, ModelState, StepMessage } from "../protocol.ts";
import type { BatchGate } from "./batch-gate.ts";
import type { Choice, ChoiceSurroundings } from "./choice.ts";
import { PrefillBudget } from "./prefill-budget.ts";
import { queueFull } from "./queue-full.ts";
import { RequestRun } from "./request-run.ts";

export interface SchedulerOptions {
  readonly around: ChoiceSurroundings;
  /** One for each slot, in the order of their ids. */
  readonly sequences: readonly LlamaContextSequence[];
  readonly gate: BatchGate;
  readonly queueLimit: number;
  readonly batchSize: number;
  readonly report: (message: StepMessage) => void;
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
}

/**
 * Drives all sequences in lockstep, which is what makes batching pay: in each step every sequence that may run advances, in ascending
 * slot order, and all of them are awaited. llama.cpp evaluates neighbouring sequences in one pass, and splits a batch at each gap, so
 * the lowest free slot is taken first.
 *
 * A prompt is evaluated in pieces that fit in a share of each step (about 50 ms for all of them), so that neither the other sequences
 * nor a cancellation wait for it. A new choice goes to the free slot that already knows most of its prompt where that saves more than a
 * gap costs. A choice whose reader is too far behind pauses; a cancelled one is gone after the step in flight.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #slots: readonly Slot[];
  readonly #waiting: Job[] = [];
  readonly #requests = new Map<number, RequestRun>();
  readonly #budget: PrefillBudget;
  #wake: (() => void) | undefined;
  #changed = false;
  #decodeSteps = 0;
  #generatedTokens = 0;
  #promptTokens = 0;
  #cachedTokens = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#slots = options.sequences.map((sequence) => ({ sequence, job: undefined }));
    this.#budget = new PrefillBudget(options.batchSize - options.sequences.length);
  }

  /** Takes a request: it waits in the queue, or is refused at once. */
  add(message: GenerateMessage): void {
    try {
      const run = new RequestRun(this.#options.around, message, this.#options.chance);
      const free = this.#slots.filter((slot) => !slot.job).length;
      // A request that finds slots free is always taken, however many choices it has.
      if (this.#waiting.length >= free && this.#waiting.length + run.choices.length - free > this.#options.queueLimit)
        throw new FailureError(queueFull(this.#waiting.length));
      this.#requests.set(run.id, run);
      for (const choice of run.choices) this.#waiting.push({ request: run, choice });
      this.#stir();
    } catch (error) {
      const failure =
        error instanceof FailureError
          ? error.failure
          : { message: String(error), status: 500, type: "server_error", cause: error };
      this.#report([[message.id, 0, [{ type: "end", end: { kind: "rejected", failure } }]]]);
    }
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

  /** Runs for ever. */
  async run(): Promise<never> {
    for (;;) {
      await this.#sweep();
      await this.#admit();
      const active = this.#slots.filter((slot) => slot.job?.request.mayRunOn);
      if (active.length > 0) await this.#step(active);
      else if (!this.#changed) await new Promise<void>((resolve) => (this.#wake = resolve));
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
    for (let i = this.#waiting.length - 1; i >= 0; i--) {
      const request = this.#waiting[i]?.request;
      if (!request?.cancelled && !request?.ended) continue;
      this.#waiting.splice(i, 1);
      freed = true;
    }
    for (const [id, request] of this.#requests) if (request.cancelled || request.ended) this.#requests.delete(id);
    if (freed) this.#report([]);
  }

  /** Gives free slots to waiting choices, first come first served. */
  async #admit(): Promise<void> {
    while (this.#waiting.length > 0) {
      const [job] = this.#waiting;
      const slot = job && this.#slotFor(job.choice);
      if (!slot) return;
      this.#waiting.shift();
      slot.job = job;
      job.request.begins();
      await job.choice.begin(slot.sequence);
      this.#cachedTokens += job.choice.cachedTokens;
    }
  }

  /** The lowest free slot, or the one that knows the prompt best if that saves at least so many tokens. */
  #slotFor(choice: Choice): Slot | undefined {
    const worthAGap = 32;
    let best: { slot: Slot; known: number } | undefined;
    for (const slot of this.#slots) {
      if (slot.job) continue;
      const known = knownTokens(slot.sequence, choice.prompt);
      if (!best || known >= best.known + worthAGap) best = { slot, known };
    }
    return best?.slot;
  }

  async #step(active: readonly Slot[]): Promise<void> {
    const { gate } = this.#options;
    const started = performance.now();
    const before = this.#totals(active);
    let allowance = this.#budget.tokens;
    let prompted = 0;
    let previous: string | undefined;
    const work: Promise<void>[] = [];
    gate.close();
    for (const { job } of active) {
      if (!job) continue;
      const { promptLeft, kind } = job.choice.nextWork;
      if (promptLeft > 0 && allowance <= 0) continue;
      const share = Math.min(promptLeft, allowance);
      allowance -= share;
      prompted += share;
      // Work of another kind takes another number of turns to reach the library's queue; the queue must be in slot order.
      if (previous !== undefined && kind !== previous) await gate.settled();
      previous = kind;
      work.push(this.#advance(job, share));
    }
    await gate.settled();
    gate.open();
    await Promise.all(work);
    this.#decodeSteps++;
    this.#promptTokens += prompted;
    this.#budget.observe(prompted, performance.now() - started);
    this.#generatedTokens += this.#totals(active) - before;
    this.#reportNews(active);
  }

  async #advance(job: Job, allowance: number): Promise<void> {
    try {
      await job.choice.step(allowance);
    } catch (error) {
      const message = `The model failed: ${error instanceof Error ? error.message : String(error)}`;
      const events = job.request.fail({ message, status: 500, type: "server_error" });
      this.#report([[job.request.id, 0, events]]);
    }
  }

  #totals(active: readonly Slot[]): number {
    return active.reduce((sum, slot) => sum + (slot.job?.choice.generatedTokens ?? 0), 0);
  }

  #reportNews(active: readonly Slot[]): void {
    const results: [number, number, GenerationEvent[]][] = [];
    for (const request of new Set(active.map((slot) => slot.job?.request))) {
      if (!request || request.cancelled || request.ended) continue;
      const { tokens, events } = request.takeNews();
      if (events.length > 0 || tokens > 0) results.push([request.id, tokens, events]);
    }
    if (results.length > 0) this.#report(results);
  }

  #report(results: StepMessage["results"]): void {
    this.#options.report({ type: "step", results, state: this.#state() });
  }

  #state(): ModelState {
    return {
      busy: this.#slots.filter((slot) => slot.job).length,
      queued: this.#waiting.length,
      counters: {
        decodeSteps: this.#decodeSteps,
        generatedTokens: this.#generatedTokens,
        promptTokens: this.#promptTokens,
        cachedTokens: this.#cachedTokens,
      },
    };
  }
}

function knownTokens(sequence: LlamaContextSequence, prompt: readonly number[]): number {
  const { firstDifferentIndex } = sequence.compareContextTokens(
    prompt as Parameters<typeof sequence.compareContextTokens>[0],
  );
  return firstDifferentIndex;
}
