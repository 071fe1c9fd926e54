import type { CacheMiss } from "../../../wire/core/cache-miss.ts";
import type { SlotState } from "../../../wire/core/engine.ts";
import type { GenerationFailure, Usage } from "../../../wire/core/events.ts";
import { FailureError } from "../../../wire/core/failure.ts";
import { queueFull } from "../../lifecycle/fair-queue.ts";
import type { PreparedRequest } from "../preparing/prepared-request.ts";
import type { SchedulerState, StepCounters, StepMessage } from "../protocol.ts";
import type { TokenizedPrompts } from "./intake.ts";
import { BatchPlanner, type Batch, type Speculation } from "./batch/batch-planner.ts";
import type { PrefillLimits } from "./batch/plan.ts";
import { BatchRunner, DecodeCounters } from "./batch/batch-runner.ts";
import { AdapterRotation } from "./c-api/adapters.ts";
import type { DraftModel } from "./drafting/draft-model.ts";
import type { PromptCache } from "./prompt-cache/prompt-cache.ts";
import type { Sequence } from "./prompt-cache/sequence.ts";
import {
  cachedTokens,
  freeCells,
  freeIdleSlot,
  selectSlot,
  Slot,
  type RunningSlot,
  type SlotSelection,
} from "./slot/slot.ts";
import { TaskGroup } from "./slot/task-group.ts";
import { TaskQueue } from "./slot/task-queue.ts";
import { isCancelled, type Task, type TaskEnvironment, type TaskRequest } from "./slot/task.ts";
import { KnownPrompts, missOf } from "../cache/known-prompts.ts";

export interface SchedulerOptions {
  readonly environment: TaskEnvironment;
  /** One for each slot, in the order of their ids. */
  readonly sequences: readonly Sequence[];
  readonly promptCache: PromptCache;
  /** Tasks of one owner that may wait. */
  readonly queueLimit: number;
  readonly prefill: PrefillLimits;
  /** Sequences can share a prefix: the model's memory can be truncated anywhere, or has checkpoints. */
  readonly sharesPrefixes: boolean;
  readonly speculation: Speculation;
  /** Drafts for answers in addition to repeated text. */
  readonly draftModel?: DraftModel | undefined;
  readonly report: (message: StepMessage) => void;
  /** Is called before the first events of a request whose prompt could have been in the cache, but is not. */
  readonly onCacheMiss: (id: number, miss: CacheMiss) => void;
  /** What the model does between decodes of answers. */
  readonly background?: BackgroundWork;
  /** Requests that are being prepared, and grammars that were made so far. */
  readonly preparing: () => { readonly waiting: number; readonly grammarsMade: number };
  /** Uniform in [0, 1), for requests without a seed. */
  readonly random: () => number;
  /** Milliseconds, for the duration of decodes. */
  readonly clock: () => number;
}

/** Work of the same model other than answers. */
export interface BackgroundWork {
  readonly hasWork: boolean;
  /** Does a part of it, a short one if `othersWait`. */
  step(othersWait: boolean): Promise<void>;
  readonly counters: Partial<StepCounters>;
}

/**
 * Events are sent together at this interval in milliseconds, because each message wakes the server, which takes a core from llama.cpp
 * where all cores compute: with two threads on two cores, one answer of a 135M model is 4 % faster than at 20 ms. The end of an answer and the
 * result of a prefill are sent immediately, and all events at the start of a longer decode.
 */
const emitIntervalMs = 40;

/** A low estimate of how fast a sequence is copied, and the share of a prompt's time that such copies may take. */
const copyBytesPerMs = 2 ** 20;
const maxCopyShare = 0.1;

const idleProgress = { promptTokens: 0, cachedTokens: 0, evaluatedTokens: 0, generatedTokens: 0, tokensLeft: null };

/**
 * The main loop of a model: continuous batching over all slots. Each step assigns waiting tasks to free slots, decodes one batch, samples
 * the next tokens and sends the events. Prompt chunks are limited in time while others wait.
 *
 * A task takes over the decoded prefix of its prompt from any slot. In a unified KV cache, slots share cells, so that this needs no copy, and
 * when no cell is free, the oldest idle slot is cleared; without one, the newest task is preempted and continues later.
 *
 * A task whose client is too far behind is paused. A cancelled task ends after the current decode, which is aborted if it is not needed
 * for others; immediately if it is not part of that decode.
 */
export class Scheduler {
  readonly #options: SchedulerOptions;
  readonly #slots: readonly Slot[];
  readonly #queue: TaskQueue;
  /** Sequences to clear after the current decode, because their tokens must not be used for other requests. */
  readonly #toClear: Sequence[] = [];
  readonly #groups = new Map<number, TaskGroup>();
  readonly #planner: BatchPlanner;
  readonly #runner: BatchRunner;
  readonly #counters = new DecodeCounters();
  readonly #knownPrompts: KnownPrompts;
  readonly #adapterRotation = new AdapterRotation();
  #wake: (() => void) | undefined;
  #betweenSteps: ((sequences: readonly Sequence[]) => void) | undefined;
  #changed = false;
  #isWaiting = false;
  #step = 0;
  #taskCount = 0;
  #promptCacheBytes = 0;
  /** Requests that took part in steps since events were last sent, and the time of that. */
  readonly #toEmit = new Set<TaskRequest>();
  #emittedAt = 0;

  constructor(options: SchedulerOptions) {
    const { environment, sequences, sharesPrefixes, prefill, speculation } = options;
    const { context, vocabulary, debug } = environment;
    this.#options = options;
    this.#slots = sequences.map((sequence) => new Slot(sequence, debug));
    this.#queue = new TaskQueue(sharesPrefixes, debug);
    this.#knownPrompts = new KnownPrompts((token) => vocabulary.bytes(token));
    this.#runner = new BatchRunner(context, options.clock);
    this.#planner = new BatchPlanner({ context, prefill, speculation });
  }

  /** Queues a request, whose prompts are given as tokens, or rejects it. Each owner has its own queue, with its own limit. */
  add(message: PreparedRequest, { prompts, images }: TokenizedPrompts, owner?: string): void {
    try {
      const { environment, random, queueLimit } = this.#options;
      const group = new TaskGroup(environment, { message, prompts, images, owner, order: this.#taskCount, random });
      const free = this.#slots.filter(({ task }) => !task).length;
      // A request that finds free slots is accepted, whatever its number of choices.
      const waiting = this.#queue.newTasksOf(owner);
      if (waiting >= free && waiting + group.tasks.length - free > queueLimit)
        throw new FailureError(queueFull(waiting, "choices"));
      this.#taskCount += group.tasks.length;
      this.#groups.set(group.id, group);
      for (const task of group.tasks) this.#queue.push(task);
      const { current } = this.#runner;
      const next = current?.isAbortable === true ? this.#nextTask() : undefined;
      if (current && next && !(this.#planner.joins(next, current) && this.#runner.abortIfEarly())) this.interrupt();
      this.wake();
    } catch (error) {
      const failed: GenerationFailure = { kind: "internal", message: String(error), status: 500 };
      this.refuse(message.id, error instanceof FailureError ? error.failure : failed);
    }
  }

  /** Ends a request that was not queued. */
  refuse(id: number, failure: GenerationFailure): void {
    this.#report([[id, 0, [{ type: "end", end: { kind: "rejected", failure } }]]]);
  }

  /** Sends the state of the model to the server, as every message of a step does. */
  reportState(): void {
    this.#report([]);
  }

  /** The state of each slot, for the slots endpoint. */
  slots(): SlotState[] {
    return this.#slots.map(({ id, task }) => ({
      id,
      busy: task !== undefined,
      ...(task && { task: task.request.id }),
      contextSize: this.#options.environment.contextSize,
      ...(task?.progress ?? idleProgress),
      ...(this.#options.draftModel && { speculative: true }),
    }));
  }

  /** Ends the reasoning of a request's answers. Returns whether any of them was reasoning. */
  endReasoning(requestId: string): boolean {
    let ended = false;
    for (const group of this.#groups.values())
      if (group.requestId === requestId && !group.cancelled)
        for (const task of group.tasks) ended = task.endReasoning() || ended;
    return ended;
  }

  /** The current usage of a request; `null` if it is not running. */
  usageOf(requestId: string): Usage | null {
    for (const group of this.#groups.values())
      if (group.requestId === requestId && !group.cancelled) return group.usage();
    return null;
  }

  cancel(id: number): void {
    const group = this.#groups.get(id);
    if (!group) return;
    group.cancelled = true;
    if (this.#runner.current) this.#releaseOutside(this.#runner.current, group);
    this.#runner.abortIfUnwanted();
    this.wake();
  }

  /** Work has arrived that can start after the current decode, which is aborted if it would take long. */
  interrupt(): void {
    const { isAbortable = false } = this.#runner.current ?? {};
    if (isAbortable && this.#runner.abortIfLong(this.#options.prefill.maxGapMs)) this.#planner.interrupted();
  }

  /** Releases the slots of a cancelled request that are not part of the current decode. */
  #releaseOutside({ shares }: Batch, group: TaskGroup): void {
    let released = false;
    for (const slot of this.#slots) {
      if (slot.task?.request !== group || shares.some((share) => share.slot === slot)) continue;
      this.#release(slot, slot.task);
      released = true;
    }
    if (released) this.reportState();
  }

  /** The client has read this number of further tokens of a request. */
  consumed(id: number, tokens: number): void {
    this.#groups.get(id)?.consumed(tokens);
    this.wake();
  }

  /** The number of the current step; `null` while the loop waits for work. */
  get turn(): number | null {
    return this.#isWaiting ? null : this.#step;
  }

  /** Calls `work` between two decodes, with the slots' sequences, the last used one first. */
  betweenSteps(work: (sequences: readonly Sequence[]) => void): void {
    this.#betweenSteps = work;
    this.wake();
  }

  /** The main loop. Never returns. */
  async run(): Promise<never> {
    const { background } = this.#options;
    for (;;) {
      this.#step++;
      // Answers and background work take turns.
      if (background?.hasWork === true) {
        this.#emit();
        await background.step(this.#slots.some(({ task }) => task));
      }
      this.#collectFinished();
      this.#runBetweenSteps();
      this.#assignTasks();
      for (const slot of this.#slots) slot.update();
      const running = this.#slots.filter((slot): slot is RunningSlot => slot.isRunning());
      if (running.length > 0) await this.#decode(running);
      else this.#emit();
      if (running.length === 0 && !this.#changed && background?.hasWork !== true) {
        this.#isWaiting = true;
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#isWaiting = false;
      }
      this.#changed = false;
    }
  }

  /** Wakes the loop, because there may be work. */
  wake(): void {
    this.#changed = true;
    this.#wake?.();
    this.#wake = undefined;
  }

  #runBetweenSteps(): void {
    const work = this.#betweenSteps;
    this.#betweenSteps = undefined;
    work?.(this.#slots.toSorted((one, other) => other.lastUsed - one.lastUsed).map(({ sequence }) => sequence));
  }

  /** Releases the slots of finished and cancelled tasks. */
  #collectFinished(): void {
    let released = false;
    for (const slot of this.#slots) {
      const { task } = slot;
      if (!task) continue;
      if (task.failure !== undefined && !isCancelled(task)) this.#fail(task, task.failure);
      if (!(task.finished || isCancelled(task))) continue;
      this.#release(slot, task);
      released = true;
    }
    for (const sequence of this.#toClear.splice(0)) sequence.clear();
    if (this.#queue.dropCancelled()) released = true;
    for (const [id, group] of this.#groups) if (group.cancelled || group.ended) this.#groups.delete(id);
    if (released) this.reportState();
  }

  #release(slot: Slot, task: Task): void {
    task.release();
    if (task.discardsCache) this.#toClear.push(slot.sequence);
    const reason = task.finished ? "finished" : task.request.cancelled ? "cancelled" : "failed";
    slot.release(reason, this.#step);
  }

  #nextTask(): Task | undefined {
    const { promptCache } = this.#options;
    return this.#queue.next(this.#slots, (task) => cachedTokens(task, this.#slots, promptCache));
  }

  /** Assigns waiting tasks to free slots. */
  #assignTasks(): void {
    const { environment, promptCache, sharesPrefixes } = this.#options;
    const selection = { promptCache, sharesPrefixes, unifiedKv: environment.context.unifiedKv };
    for (let assigned = 0; ; assigned++) {
      const task = this.#nextTask();
      const selected = task && selectSlot(task, this.#slots, selection);
      if (!selected) {
        // The prefill of a long prompt has no events for seconds.
        if (assigned > 0) this.reportState();
        return;
      }
      this.#assign(task, selected);
    }
  }

  #assign(task: Task, selected: SlotSelection): void {
    const { slot } = selected;
    const isFirst = this.#queue.take(task);
    const { promptCache, onCacheMiss } = this.#options;
    const cached = [...this.#slots.map(({ sequence }) => sequence), ...promptCache.states].map(({ tokens }) => tokens);
    const asked = { owner: task.owner, tokens: task.prompt, ...task.outlined };
    const draft = this.#knownPrompts.beforeSlotChange(slot.id, asked, cached);
    slot.assign(task);
    task.request.start();
    this.#attempt(task, () => {
      this.#prepareSequence(selected, task);
      task.start(slot.sequence);
    });
    this.#promptCacheBytes = promptCache.bytes;
    if (isFirst) {
      this.#counters.started(task.cachedTokens);
      const miss = draft && task.usesCache && task.reportsPrompt ? missOf(draft, task.cachedTokens) : null;
      if (miss) onCacheMiss(task.request.id, miss);
    }
    // A request that only echoes its prompt is finished before the first decode.
    if (task.finished) {
      this.#toEmit.add(task.request);
      this.#emit();
      this.wake();
    }
  }

  #prepareSequence({ slot: { sequence }, from, savesTokens }: SlotSelection, { prompt }: Task): void {
    const { promptCache } = this.#options;
    if (from && "blocks" in from.source) promptCache.take(from.source, from.count);
    if (savesTokens) promptCache.save(sequence);
    const left = prompt.length - (from?.count ?? sequence.commonLength(prompt));
    if (!from) return this.#setIdleSlotsAside(left);
    const { source, count } = from;
    if (!("blocks" in source)) {
      sequence.copyFrom(source, count);
      return this.#setIdleSlotsAside(left);
    }
    sequence.clear();
    this.#setIdleSlotsAside(left);
    do sequence.restore(source);
    while (sequence.length === 0 && freeIdleSlot(this.#slots, promptCache));
    if (sequence.length === 0) promptCache.addIfFits(source);
  }

  /**
   * Moves the tokens of idle slots to the prompt cache before a prompt is processed alone. In a unified KV cache, attention looks past the
   * cells of all sequences: a prompt of 3,000 tokens of a 135M model took 8.8 s of CPU time with empty slots, 10.0, 11.2 and 13.0 s next to
   * one, two and three idle ones with as many tokens (one thread of an AMD EPYC). `promptLeft`: tokens to process.
   */
  #setIdleSlotsAside(promptLeft: number): void {
    const { promptCache, environment } = this.#options;
    const { context, model } = environment;
    // A copy of a memory that needs checkpoints can be truncated less far than the memory itself.
    if (!context.unifiedKv || model.needsCheckpoints || this.#slots.filter(({ task }) => task).length > 1) return;
    const tokenMs = this.#planner.costs.promptTokenMs(promptLeft) ?? 0;
    for (const { task, sequence } of this.#slots) {
      if (task || sequence.length === 0) continue;
      const copyMs = sequence.unsavedSize() / copyBytesPerMs;
      if (copyMs <= promptLeft * tokenMs * maxCopyShare && promptCache.saveIfFits(sequence)) sequence.clear();
    }
  }

  /** One step: decodes a batch, and samples the next tokens. */
  async #decode(running: readonly RunningSlot[]): Promise<void> {
    const { promptCache, background, draftModel } = this.#options;
    const slots = this.#sameAdapters(running);
    if (draftModel) await draftModel.draft(slots, this.#planner);
    const othersWait = background?.hasWork === true || this.#slots.filter(({ task }) => task).length > slots.length;
    const batch = this.#planner.next(slots, othersWait);
    const { shares } = batch;
    const expectedMs = this.#planner.costs.expectedMs(batch);
    const decoding = this.#runBatch(batch, expectedMs);
    // Such a decode runs in another thread, and has started.
    if (expectedMs > emitIntervalMs) this.#emit();
    for (const { task } of shares) this.#toEmit.add(task.request);
    const result = await decoding;
    if (result === "done") {
      this.#counters.decoded(batch, () => {
        for (const { slot, task, chunk, index } of shares) {
          this.#attempt(task, () => task.decoded(chunk, index));
          if (task.wantsCheckpoint) promptCache.checkpoint(slot.sequence);
        }
      });
    } else {
      for (const { slot } of shares) slot.sequence.rollback();
      if (result === "no-free-cells" && !this.#planner.canShrink(batch)) {
        const preempted = freeCells(this.#slots, promptCache, this.#step);
        if (preempted) this.#queue.pushPreempted(preempted);
      }
    }
    const isUrgent = batch.promptTokens > 0 || shares.some(({ task }) => task.finished || task.request.emitsEachStep);
    if (isUrgent || performance.now() - this.#emittedAt >= emitIntervalMs) this.#emit();
  }

  /** The slots whose adapters can be used in the same batch. */
  #sameAdapters(running: readonly RunningSlot[]): readonly RunningSlot[] {
    const { adapters, context } = this.#options.environment;
    if (!adapters) return running;
    const slots = this.#adapterRotation.next(running, ({ task }) => task.adapters);
    adapters.use(context, slots[0]?.task.adapters ?? "");
    return slots;
  }

  /** Decodes the batch. If llama.cpp fails, the requests in the batch end. */
  async #runBatch(batch: Batch, expectedMs: number): Promise<"done" | "no-free-cells" | "aborted" | "failed"> {
    try {
      const { result, ms } = await this.#runner.decode(batch, expectedMs);
      if (result === "done") this.#planner.observe(batch, ms);
      return result;
    } catch (error) {
      for (const { task } of batch.shares) this.#fail(task, error);
      return "failed";
    }
  }

  /** Runs `work`; if it throws, the task's request ends. */
  #attempt(task: Task, work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(task, error);
    }
  }

  #fail({ request }: Task, error: unknown): void {
    const message = `The model failed: ${error instanceof Error ? error.message : String(error)}`;
    const failed: GenerationFailure = { message, status: 500, kind: "internal" };
    this.#report([[request.id, 0, request.fail(error instanceof FailureError ? error.failure : failed)]]);
  }

  /** Sends the events of all requests that took part in steps. */
  #emit(): void {
    this.#emittedAt = performance.now();
    const results: StepMessage["results"][number][] = [];
    for (const request of this.#toEmit) {
      if (request.cancelled || request.ended) continue;
      const { tokens, events, written } = request.takeResults();
      if (events.length === 0 && tokens === 0) continue;
      results.push(written ? [request.id, tokens, events, written] : [request.id, tokens, events]);
    }
    this.#toEmit.clear();
    if (results.length > 0) this.#report(results);
  }

  #report(results: StepMessage["results"]): void {
    this.#options.report({ type: "step", results, state: this.#state() });
  }

  #state(): SchedulerState {
    const { preparing, environment, background } = this.#options;
    const { waiting, grammarsMade } = preparing();
    return {
      busy: this.#slots.filter(({ task }) => task).length,
      queued: this.#queue.length + waiting,
      counters: {
        ...this.#counters.counters,
        promptCacheBytes: this.#promptCacheBytes,
        grammarsMade,
        vocabularyScans: environment.vocabulary.scans,
        ...background?.counters,
      },
    };
  }
}
