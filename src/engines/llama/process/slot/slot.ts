import type { PromptCache } from "../prompt-cache/prompt-cache.ts";
import { minCopyTokens } from "../prompt-cache/prompt-cache.ts";
import { lostTokens, type Sequence, type SequenceState } from "../prompt-cache/sequence.ts";
import type { Task } from "./task.ts";

/*
 * The nouns of the engine, which are those of llama.cpp's server:
 *
 * - A **task** (`task.ts`) is one answer to generate: it waits in the queue or has a slot. A request with `n` choices has `n` tasks, which
 *   a `TaskGroup` combines into one result.
 * - A **slot** is a sequence of the KV cache and the task that uses it. The number of slots is the number of answers that run in parallel.
 * - A **batch** (`batch/batch-planner.ts`) is what one `llama_decode` takes: tokens of several slots.
 */

/**
 * - `idle`: no task. The sequence keeps its tokens as a cached prompt for later tasks.
 * - `prefill`: tokens of the prompt are left to decode.
 * - `encode`: the rows of the next image are being computed.
 * - `decode`: each decode samples at least one token.
 * - `paused`: the client is too far behind with reading the answer.
 * - `finished`: the answer was complete before the first decode; the slot becomes idle at the start of the next step.
 */
export type SlotPhase = "idle" | "prefill" | "encode" | "decode" | "paused" | "finished";

/** A slot with a task. */
export type RunningSlot = Slot & { readonly task: Task };

/** A sequence of the KV cache, and the task that uses it. All transitions between phases are methods of this class. */
export class Slot {
  readonly sequence: Sequence;
  /** The scheduler's step in which the slot became idle. */
  lastUsed = 0;
  #phase: SlotPhase = "idle";
  #task: Task | undefined;
  readonly #debug: ((line: string) => void) | undefined;

  /** `debug` is called with a line for each transition. */
  constructor(sequence: Sequence, debug?: (line: string) => void) {
    this.sequence = sequence;
    this.#debug = debug;
  }

  get id(): number {
    return this.sequence.id;
  }

  get phase(): SlotPhase {
    return this.#phase;
  }

  get task(): Task | undefined {
    return this.#task;
  }

  /** idle → prefill. */
  assign(task: Task): void {
    this.#task = task;
    this.#enter("prefill", "assigned");
  }

  /** prefill, encode, decode, paused → the phase that the task's progress and its client's reading lead to. */
  update(): void {
    const task = this.#task;
    if (!task) return;
    if (task.finished) this.#enter("finished", "finished");
    else if (!task.request.canContinue) this.#enter("paused", "the client is behind");
    else if (task.promptLeft > 0 && task.awaitsRows) this.#enter("encode", "image");
    else if (task.promptLeft > 0) this.#enter("prefill", "prompt");
    else this.#enter("decode", "prompt is decoded");
  }

  /** Any phase → idle. `step`: the scheduler's current step. */
  release(reason: "finished" | "cancelled" | "failed" | "preempted", step: number): void {
    this.#enter("idle", reason);
    this.#task = undefined;
    this.lastUsed = step;
  }

  /** Whether the slot takes part in the next decode. */
  isRunning(): this is RunningSlot {
    return this.#phase === "prefill" || this.#phase === "decode";
  }

  #enter(phase: SlotPhase, reason: string): void {
    if (phase === this.#phase) return;
    this.#debug?.(`slot ${this.id}: ${this.#phase} → ${phase} (task ${this.#task?.id}, ${reason})`);
    this.#phase = phase;
  }
}

/** A free slot for a task, and how to prepare its sequence before the task starts. */
export interface SlotSelection {
  readonly slot: Slot;
  /** Another sequence or a cached state, whose first `count` tokens are copied into the slot. */
  readonly from?: { readonly source: Sequence | SequenceState; readonly count: number };
  /** The slot's tokens belong to another conversation, and are saved in the prompt cache before they are replaced. */
  readonly savesTokens: boolean;
}

export interface SlotSelectionOptions {
  readonly promptCache: PromptCache;
  /** All sequences share the cells of one KV cache. */
  readonly unifiedKv: boolean;
  /** Sequences can share a prefix: the model's memory can be truncated anywhere, or has checkpoints. */
  readonly sharesPrefixes: boolean;
}

/** A prefix that has to be copied is worth that from this number of tokens on. */
const minPrefixCopyTokens = 64;

/**
 * Selects a free slot for a task: the one whose last prompt it continues, if there is one; else the one that was idle for the longest time
 * (without a unified KV cache the lowest one), with a copy of the longest prefix that another slot or the prompt cache has. So a retry or an
 * edited history leaves the other branch its tokens, in its slot or in the prompt cache; where that has no space for them, it takes the slot
 * in which the fewest tokens are lost. Returns `undefined` if no slot is free. Comparing 16 slots and 64 cached states with a common prefix
 * of 8,000 tokens takes 0.8 ms.
 */
export function selectSlot(
  { prompt, adapters, usesCache }: Pick<Task, "prompt" | "adapters" | "usesCache">,
  slots: readonly Slot[],
  { promptCache, unifiedKv, sharesPrefixes }: SlotSelectionOptions,
): SlotSelection | undefined {
  const requested = { tokens: prompt, adapters };
  // The last token is decoded in any case, because its logits are needed.
  const max = prompt.length - 1;
  const reusableIn = ({ sequence, task }: Slot): number =>
    usesCache && task?.discardsCache !== true ? sequence.reusable(requested, max) : 0;
  let best: { readonly slot: Slot; readonly reusable: number } | undefined;
  for (const slot of slots) {
    const reusable = reusableIn(slot);
    const isBetter = !best || reusable > best.reusable || (reusable === best.reusable && best.slot.task && !slot.task);
    if (isBetter) best = { slot, reusable };
  }
  if (!best) return undefined;
  const { slot: source, reusable } = best;
  const cached = usesCache ? promptCache.find(requested, max) : undefined;
  const copy =
    cached && cached.reusable >= reusable + minCopyTokens
      ? { source: cached.state, count: cached.reusable }
      : undefined;
  const lost = lostTokens(source.sequence, reusable);
  // Without a unified KV cache, a gap between busy slots costs more than to decode most of a short prompt again.
  const continues = lost < minCopyTokens && (unifiedKv || lost <= reusable);
  if (!source.task && continues) return { slot: source, ...(copy && { from: copy }), savesTokens: false };
  // The source keeps its tokens if sharing them costs nothing, or if they are too many to decode again.
  const isSpared = unifiedKv || reusable >= minPrefixCopyTokens;
  const [first, ...others] = slots.filter((slot) => !slot.task && !(isSpared && slot === source));
  if (!first) return source.task ? undefined : { slot: source, ...(copy && { from: copy }), savesTokens: true };
  // Without a unified KV cache, llama.cpp makes several decodes of a batch whose sequences are not adjacent.
  const slot = unifiedKv
    ? others.reduce((oldest, other) => (other.lastUsed < oldest.lastUsed ? other : oldest), first)
    : first;
  if (!source.task && lost <= slot.sequence.length && !promptCache.canSave(slot.sequence))
    return { slot: source, ...(copy && { from: copy }), savesTokens: true };
  if (copy) return { slot, from: copy, savesTokens: true };
  if (!usesCache || !sharesPrefixes || reusable - reusableIn(slot) < (unifiedKv ? 1 : minPrefixCopyTokens))
    return { slot, savesTokens: true };
  return { slot, from: { source: source.sequence, count: reusable }, savesTokens: true };
}

/** The number of a task's prompt tokens that a slot or the prompt cache has. */
export function cachedTokens(
  { prompt, adapters }: Pick<Task, "prompt" | "adapters">,
  slots: readonly Slot[],
  promptCache: PromptCache,
): number {
  const requested = { tokens: prompt, adapters };
  const max = prompt.length - 1;
  const inSlots = slots.map(({ sequence, task }) =>
    task?.discardsCache === true ? 0 : sequence.reusable(requested, max),
  );
  return Math.max(0, ...inSlots, promptCache.find(requested, max)?.reusable ?? 0);
}

/** Frees the cells of the slot that was idle for the longest time, after its tokens were saved. Returns false if all slots are busy or empty. */
export function freeIdleSlot(slots: readonly Slot[], promptCache: Pick<PromptCache, "save">): boolean {
  const [idle, ...more] = slots.filter(({ task, sequence }) => !task && sequence.length > 0);
  if (!idle) return false;
  const oldest = more.reduce((slot, other) => (other.lastUsed < slot.lastUsed ? other : slot), idle);
  promptCache.save(oldest.sequence);
  oldest.sequence.clear();
  return true;
}

/**
 * Frees cells of a full KV cache: those of the slot that was idle for the longest time. If no slot is idle, the newest task is preempted:
 * it loses its cells and its slot, and its prompt is processed again later. The only running task ends with `length`.
 *
 * Returns the preempted task.
 */
export function freeCells(
  slots: readonly Slot[],
  promptCache: Pick<PromptCache, "save">,
  step: number,
): Task | undefined {
  if (freeIdleSlot(slots, promptCache)) return undefined;
  const [busy, ...others] = slots.flatMap((slot) => (slot.task ? [{ slot, task: slot.task }] : []));
  if (!busy) return undefined;
  if (others.length === 0) {
    busy.task.answer.finish("length");
    return undefined;
  }
  const { slot, task } = others.reduce(
    (newest, other) => (other.task.order > newest.task.order ? other : newest),
    busy,
  );
  if (!task.discardsCache) promptCache.save(slot.sequence);
  task.preempt();
  slot.release("preempted", step);
  return task;
}
