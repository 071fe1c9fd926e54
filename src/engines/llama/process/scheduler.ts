import type { SlotState } from "../../../core/engine.ts";
import type { GenerationFailure } from "../../../core/events.ts";
import type { CacheMiss } from "../../../core/cache-miss.ts";
import { FailureError } from "../../../core/failure.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import type { ModelState, StepCounters, StepMessage } from "../protocol.ts";
import type { DecodeResult, NativeContext } from "./c-api/native-context.ts";
import { AdapterRotation } from "./c-api/adapters.ts";
import { CacheWatch } from "./prompt-cache/cache-watch.ts";
import type { TaskEnvironment } from "./slot/task.ts";
import {
  isOver,
  runnerOf,
  type Job,
  type Runner,
  type Slot,
  freeCells,
  selectSlot,
  type Place,
  type Placing,
} from "./slot/slot.ts";
import type { PromptCache } from "./prompt-cache/prompt-cache.ts";
import { PassPlanner, type Pass } from "./batch/batch-planner.ts";
import { queueFull, WaitingJobs } from "./slot/task-queue.ts";
import { RequestRun } from "./slot/task-group.ts";
import type { Sequence } from "./prompt-cache/sequence.ts";
import type { SpeculationBudget } from "./batch/speculation-budget.ts";

export interface SchedulerOptions {
  readonly environment: TaskEnvironment;
  /** One for each slot, in the order of their ids. */
  readonly sequences: readonly Sequence[];
  /** Copies of what slots knew, and their checkpoints. */
  readonly promptCache: PromptCache;
  readonly queueLimit: number;
  readonly batchSize: number;
  /** Sequences that begin alike can share their beginning: the model's memory can be cut anywhere, or has checkpoints. */
  readonly sharesPrefixes: boolean;
  /** Says which drafts pay; undefined: nothing is drafted. */
  readonly speculation: SpeculationBudget | undefined;
  readonly report: (message: StepMessage) => void;
  /** A request's prompt is not in the cache, as much of it could be; told before its first events. */
  readonly onCacheMiss: (id: number, miss: CacheMiss) => void;
  /** What the model does between passes for answers. */
  readonly background?: BackgroundWork;
  /** What happens before the scheduler: requests in preparation, grammars made so far. */
  readonly preparing: () => { readonly waiting: number; readonly grammarsMade: number };
  /** Uniform in [0, 1), for requests without a seed. */
  readonly random: () => number;
  /** Milliseconds that computing has taken so far. */
  readonly clock: () => number;
}

/** Work of the same model that is no answer. */
export interface BackgroundWork {
  readonly hasWork: boolean;
  /** Does a part of it, a short one where `othersWait`. */
  step(othersWait: boolean): Promise<void>;
  readonly counters: Partial<StepCounters>;
}

/**
 * What answers say is told together, within so many milliseconds of wall time: each telling wakes the server, which takes a core from
 * llama.cpp where all compute. Ends, and what a prompt's last piece brings, are told at once, and all before a pass that takes longer.
 */
const tellWithin = 20;

/**
 * Drives all sequences together, which is what makes batching pay: each step is one pass of llama.cpp, of answers that advance by a
 * token (by more where it was guessed), of pieces of prompts, or of both. Pieces are small where answers run, so that neither they nor a
 * cancellation wait long.
 *
 * The slots share the memory that is there. A new choice goes to a free slot, and is given what any slot, busy or not, knows of the
 * beginning of its prompt, without a copy. Where the room runs out, what idle slots know is forgotten, the longest unused first; then
 * the answer that began last gives its part back, waits, and is read again when another one has ended.
 *
 * A choice whose reader is too far behind pauses; a cancelled one is gone after the pass that is under way, which is ended early when
 * it is for nobody else, or mostly; at once when it has no part in it.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #slots: readonly Slot[];
  readonly #waiting: WaitingJobs;
  /** What they know is to be kept for nobody. During a pass in the other thread nothing of its memory may be touched. */
  readonly #toForget: Sequence[] = [];
  readonly #requests = new Map<number, RequestRun>();
  readonly #planner: PassPlanner;
  readonly #running: RunningPass;
  readonly #counts = new StepCounts();
  readonly #watch: CacheWatch;
  readonly #placing: Placing;
  readonly #adapterTurns = new AdapterRotation();
  #wake: (() => void) | undefined;
  #work: ((sequences: readonly Sequence[]) => void) | undefined;
  #changed = false;
  #turn = 0;
  #jobs = 0;
  /** Requests in passes since news was told last, and when that was. */
  readonly #untold = new Set<RequestRun>();
  #toldAt = 0;
  #waitsForWork = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    const { vocabulary } = options.environment;
    this.#watch = new CacheWatch((token) => vocabulary.bytes(token), options.onCacheMiss);
    const { promptCache: states, sharesPrefixes: sharesBeginnings } = options;
    this.#placing = { states, sharesBeginnings, oneMemory: options.environment.context.unifiedKv };
    this.#slots = options.sequences.map((sequence) => ({ sequence, job: undefined, usedAt: 0 }));
    this.#waiting = new WaitingJobs(sharesBeginnings);
    this.#running = new RunningPass(options.environment.context, options.clock);
    const { environment: around, batchSize, speculation } = options;
    this.#planner = new PassPlanner({ context: around.context, batchSize, slots: this.#slots.length, speculation });
  }

  /**
   * Takes a request with its prompts' tokens: it waits in the queue, or is refused at once. `owner`: whose it is; each has a queue, as long
   * as the others'.
   */
  add(message: PreparedRequest, prompts: readonly (readonly number[])[], owner?: string): void {
    try {
      const run = new RequestRun(this.#options.environment, message, prompts, this.#options.random);
      const free = this.#slots.filter((slot) => !slot.job).length;
      // A request that finds slots free is always taken, however many choices it has.
      const waiting = this.#waiting.freshOf(owner);
      if (waiting >= free && waiting + run.choices.length - free > this.#options.queueLimit)
        throw new FailureError(queueFull(waiting));
      this.#requests.set(run.id, run);
      for (const choice of run.choices) this.#waiting.push({ request: run, choice, owner, order: ++this.#jobs });
      this.wake();
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
  reportState(): void {
    this.#report([]);
  }

  /** What each slot does now. */
  slots(): SlotState[] {
    return this.#slots.map(({ job }, id) => ({
      id,
      busy: job !== undefined,
      ...(job && { task: job.request.id }),
      contextSize: this.#options.environment.contextSize,
      ...(job?.choice.state ?? idle),
    }));
  }

  cancel(id: number): void {
    const request = this.#requests.get(id);
    if (!request) return;
    request.cancelled = true;
    if (this.#running.underWay) this.#freeBeside(this.#running.underWay, request);
    this.#running.endIfForNobody();
    this.wake();
  }

  /** A request that has no part in the pass that is under way need not wait for its end. */
  #freeBeside({ shares }: Pass<Runner>, request: RequestRun): void {
    let freed = false;
    for (const slot of this.#slots) {
      const { job } = slot;
      if (job?.request !== request || shares.some(({ who }) => who.slot === slot)) continue;
      this.#free(slot, job);
      freed = true;
    }
    if (freed) this.reportState();
  }

  consumed(id: number, tokens: number): void {
    this.#requests.get(id)?.taken(tokens);
    this.wake();
  }

  /** The number of the loop's current turn, a new one for every step; null: it waits for work. */
  get turn(): number | null {
    return this.#waitsForWork ? null : this.#turn;
  }

  /** Does something between two passes, with the slots' sequences, the last used one first. */
  betweenSteps(work: (sequences: readonly Sequence[]) => void): void {
    this.#work = work;
    this.wake();
  }

  /** Runs for ever. */
  async run(): Promise<never> {
    const { background: beside } = this.#options;
    for (;;) {
      this.#turn++;
      // Answers and what is beside them have a pass by turns.
      if (beside?.hasWork === true) {
        this.#tellNews();
        await beside.step(this.#slots.some(({ job }) => job));
      }
      this.#sweep();
      if (this.#work) this.#doWork(this.#work);
      this.#admit();
      const active = this.#slots.filter(({ job }) => job && !job.choice.finished && job.request.mayRunOn);
      if (active.length > 0) await this.#step(active);
      else this.#tellNews();
      if (active.length === 0 && !this.#changed && beside?.hasWork !== true) {
        this.#waitsForWork = true;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#waitsForWork = false;
      }
      this.#changed = false;
    }
  }

  #doWork(work: (sequences: readonly Sequence[]) => void): void {
    this.#work = undefined;
    const slots = this.#slots.toSorted((one, other) => other.usedAt - one.usedAt);
    work(slots.map(({ sequence }) => sequence));
  }

  /** There may be something to do. */
  wake(): void {
    this.#changed = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Frees the slots of what has finished or was cancelled. */
  #sweep(): void {
    let freed = false;
    for (const slot of this.#slots) {
      const { job } = slot;
      if (!job || !(job.choice.finished || isOver(job))) continue;
      this.#free(slot, job);
      freed = true;
    }
    for (const sequence of this.#toForget.splice(0)) sequence.clear();
    if (this.#waiting.dropOver()) freed = true;
    for (const [id, request] of this.#requests) if (request.cancelled || request.ended) this.#requests.delete(id);
    if (freed) this.reportState();
  }

  #free(slot: Slot, job: Job): void {
    job.choice.release();
    if (job.choice.forgets) this.#toForget.push(slot.sequence);
    slot.job = undefined;
    slot.usedAt = this.#turn;
  }

  /** Gives free slots to waiting choices, of one owner after the other, first come first served. */
  #admit(): void {
    for (let begun = 0; ; begun++) {
      const job = this.#waiting.next(this.#slots);
      const place = job && selectSlot(job.choice, this.#slots, this.#placing);
      if (!place) {
        // A long prompt brings no news for seconds.
        if (begun > 0) this.reportState();
        return;
      }
      const { slot } = place;
      const begins = this.#waiting.take(job);
      const { states } = this.#options.promptCache;
      const known = [...this.#slots.map(({ sequence }) => sequence), ...states].map(({ tokens }) => tokens);
      const missed = this.#watch.takes(this.#slots.indexOf(slot), job, known);
      slot.job = job;
      job.request.begins();
      this.#attempt(job, () => {
        this.#prepare(place);
        job.choice.begin(slot.sequence);
      });
      if (begins) {
        this.#counts.began(job.choice.cachedTokens);
        this.#watch.began(job.request.id, missed, job.choice.cachedTokens);
      }
      // A prompt that is only given back is done before its first step.
      if (job.choice.finished) {
        this.#untold.add(job.request);
        this.#tellNews();
        this.wake();
      }
    }
  }

  #prepare({ slot: { sequence }, from, forgets }: Place<Slot>): void {
    const { promptCache: states } = this.#options;
    if (forgets) states.save(sequence);
    if (!from) return;
    const { source, count } = from;
    if (!("state" in source)) return sequence.copyFrom(source, count);
    sequence.restore(source);
    if (sequence.length > 0) states.restored(source, count);
  }

  /** One pass: a token of each answer or more, and pieces of prompts. */
  async #step(active: readonly Slot[]): Promise<void> {
    const begun = this.#options.clock();
    const pass = this.#planner.next(this.#turnOf(active).flatMap(runnerOf));
    const { shares } = pass;
    const expectedMs = this.#planner.expectedMs(pass);
    if (expectedMs > tellWithin) this.#tellNews();
    for (const { who } of shares) this.#untold.add(who.request);
    const started = this.#options.clock();
    const result = await this.#pass(pass, expectedMs);
    if (result === "done") {
      this.#planner.observe(pass, this.#options.clock() - started);
      this.#counts.passed(pass, active, () => {
        for (const { who, piece, index } of shares) {
          this.#attempt(who.job, () => who.choice.passed(piece, index));
          if (who.choice.wantsCheckpoint) this.#options.promptCache.checkpoint(who.sequence);
        }
      });
    } else {
      for (const { who } of shares) who.sequence.rollback();
      if (result === "no-room" && !this.#planner.canDoWithLess(pass)) {
        const interrupted = freeCells(this.#slots, this.#options.promptCache);
        if (interrupted) this.#waiting.interrupt(interrupted);
      }
    }
    const isUrgent = pass.prompted > 0 || shares.some(({ who }) => who.choice.finished || who.request.isToldAtOnce);
    if (isUrgent || performance.now() - this.#toldAt >= tellWithin) this.#tellNews();
    if (result === "done") this.#planner.observeStep(pass, this.#options.clock() - begun);
  }

  /** Those that can be evaluated together. */
  #turnOf(active: readonly Slot[]): readonly Slot[] {
    const { adapters, context } = this.#options.environment;
    if (!adapters) return active;
    const turn = this.#adapterTurns.next(active, ({ job }) => job?.choice.adapters ?? "");
    adapters.use(context, turn[0]?.job?.choice.adapters ?? "");
    return turn;
  }

  /** Evaluates the batch. If that fails, the requests in it end. */
  async #pass(pass: Pass<Runner>, expectedMs: number): Promise<DecodeResult | "failed"> {
    try {
      return await this.#running.make(pass, expectedMs);
    } catch (error) {
      for (const { who } of pass.shares) this.#fail(who.job, error);
      return "failed";
    }
  }

  /** Does a job's work; when it fails, the job's request ends. */
  #attempt(job: Job, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(job, error);
    }
  }

  #fail(job: Job, error: unknown): void {
    const message = `The model failed: ${error instanceof Error ? error.message : String(error)}`;
    const failed: GenerationFailure = { message, status: 500, kind: "internal" };
    const events = job.request.fail(error instanceof FailureError ? error.failure : failed);
    this.#report([[job.request.id, 0, events]]);
  }

  #tellNews(): void {
    this.#toldAt = performance.now();
    const results: StepMessage["results"][number][] = [];
    for (const request of this.#untold) {
      if (request.cancelled || request.ended) continue;
      const { tokens, events, written } = request.takeNews();
      if (events.length === 0 && tokens === 0) continue;
      results.push(written ? [request.id, tokens, events, written] : [request.id, tokens, events]);
    }
    this.#untold.clear();
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
        ...this.#counts.counters,
        grammarsMade,
        vocabularyScans: this.#options.environment.vocabulary.scans,
        ...this.#options.background?.counters,
      },
    };
  }
}

const idle = { promptTokens: 0, cachedTokens: 0, evaluatedTokens: 0, generatedTokens: 0, tokensLeft: null };

/** A pass that takes longer is made in a thread beside, so that this one hears who leaves and who comes. In milliseconds. */
const longPass = 20;
/** What is left of a pass must take longer if it is to be made once more without those who have left, in milliseconds. */
const worthRepeating = 50;

/** Makes passes, the long ones in a thread beside, and ends those that are for nobody any more. */
export class RunningPass {
  readonly #context: NativeContext;
  readonly #clock: () => number;
  /** The pass in the other thread. `again`: the one before it was ended. */
  #underWay:
    | {
        readonly pass: Pass<Runner>;
        readonly expectedMs: number;
        readonly started: number;
        readonly again: boolean;
      }
    | undefined;
  #isAborted = false;

  /** `clock`: milliseconds that computing has taken so far. */
  constructor(context: NativeContext, clock: () => number) {
    this.#context = context;
    this.#clock = clock;
  }

  /** The pass in the other thread: until it ends nothing of the context's memory may be touched. */
  get underWay(): Pass<Runner> | undefined {
    return this.#underWay?.pass;
  }

  /** Evaluates the batch. Throws an Error if that fails. */
  async make(pass: Pass<Runner>, expectedMs: number): Promise<DecodeResult> {
    if (expectedMs < longPass) {
      // Messages are read between passes.
      await new Promise((resolve) => setImmediate(resolve));
      return this.#context.decode();
    }
    this.#underWay = { pass, expectedMs, started: this.#clock(), again: this.#isAborted };
    try {
      const result = await this.#context.decodeAsync();
      this.#isAborted = result === "aborted";
      return result;
    } finally {
      this.#underWay = undefined;
    }
  }

  /** A request was cancelled: ends the pass if it is for nobody now. */
  endIfForNobody(): void {
    if (this.#isForNobody()) this.#context.abort();
  }

  /**
   * The pass that is under way is for clients who have left; or most of it is, it goes on for long, and others' part of it can be made
   * once more: not twice in a row, or clients who come and leave would hold up the others.
   */
  #isForNobody(): boolean {
    if (!this.#underWay) return false;
    const { pass, expectedMs, started, again } = this.#underWay;
    const { shares } = pass;
    const left = shares.filter(({ who }) => who.request.cancelled);
    if (left.length === shares.length) return true;
    const tokens = (of: typeof shares): number => of.reduce((sum, { piece }) => sum + piece.tokens.length, 0);
    if (again || this.#context.model.isRecurrent || 2 * tokens(left) < tokens(shares)) return false;
    return started + expectedMs - this.#clock() > worthRepeating;
  }
}

/** What was computed so far. */
export class StepCounts {
  #decodeSteps = 0;
  #generatedTokens = 0;
  #promptTokens = 0;
  #cachedTokens = 0;
  #draftedTokens = 0;
  #acceptedTokens = 0;

  /** A choice began, with so many tokens of its prompt known. */
  began(cachedTokens: number): void {
    this.#cachedTokens += cachedTokens;
  }

  /** A pass is done; `read` draws what follows of it. */
  passed({ prompted, drafted }: Pass<Runner>, active: readonly Slot[], read: () => void): void {
    const before = totals(active);
    read();
    const after = totals(active);
    this.#decodeSteps++;
    this.#promptTokens += prompted;
    this.#draftedTokens += drafted;
    this.#generatedTokens += after.generated - before.generated;
    this.#acceptedTokens += after.accepted - before.accepted;
  }

  get counters(): Pick<
    StepCounters,
    "decodeSteps" | "generatedTokens" | "promptTokens" | "cachedTokens" | "draftedTokens" | "acceptedTokens"
  > {
    return {
      decodeSteps: this.#decodeSteps,
      generatedTokens: this.#generatedTokens,
      promptTokens: this.#promptTokens,
      cachedTokens: this.#cachedTokens,
      draftedTokens: this.#draftedTokens,
      acceptedTokens: this.#acceptedTokens,
    };
  }
}

/** Tokens of all answers so far, and drafts that were right. */
function totals(active: readonly Slot[]): { readonly generated: number; readonly accepted: number } {
  let generated = 0;
  let accepted = 0;
  for (const { job } of active) {
    generated += job?.choice.generatedTokens ?? 0;
    accepted += job?.choice.guesses.accepted ?? 0;
  }
  return { generated, accepted };
}
