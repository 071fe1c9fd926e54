import { FairQueue } from "../../../lifecycle/fair-queue.ts";
import { commonLength } from "../prompt-cache/sequence.ts";
import type { Slot } from "./slot.ts";
import { isCancelled, type Task } from "./task.ts";

/** From this number of tokens on, a prefix is worth waiting for while another task is decoding it. */
const minSharedPromptTokens = 64;

/** Tasks without a slot: new ones, in a fair queue by tier and owner, and preempted ones, which come first. */
export class TaskQueue {
  readonly #new = new FairQueue<Task>();
  /** In the order in which they started. */
  #preempted: Task[] = [];
  readonly #sharesPrefixes: boolean;
  readonly #debug: ((line: string) => void) | undefined;

  /** `sharesPrefixes`: a slot can take over the decoded prompt of another one. */
  constructor(sharesPrefixes: boolean, debug?: (line: string) => void) {
    this.#sharesPrefixes = sharesPrefixes;
    this.#debug = debug;
  }

  get length(): number {
    return this.#new.length + this.#preempted.length;
  }

  /** Number of new tasks of an owner. */
  newTasksOf(owner: string | undefined): number {
    return this.#new.lengthOf(owner);
  }

  push(task: Task): void {
    this.#new.push(task, task.owner, task.tier);
    this.#debug?.(`task ${task.id}: queued (${this.length} waiting)`);
  }

  pushPreempted(task: Task): void {
    this.#preempted = [task, ...this.#preempted];
    this.#debug?.(`task ${task.id}: preempted (${this.length} waiting)`);
  }

  /** Removes a task that gets a slot. Returns whether it is its first one. */
  take(task: Task): boolean {
    const others = this.#preempted.filter((other) => other !== task);
    const isFirst = others.length === this.#preempted.length;
    this.#preempted = others;
    if (isFirst) this.#new.take(task);
    return isFirst;
  }

  /** Removes tasks of cancelled requests. Returns whether new tasks were among them. */
  dropCancelled(): boolean {
    if (this.length === 0) return false;
    for (const task of this.#preempted) if (isCancelled(task)) task.release();
    this.#preempted = this.#preempted.filter((task) => !isCancelled(task));
    return this.#new.dropWhere(isCancelled);
  }

  /**
   * The task for the next free slot; `undefined` if no slot is free or no task can start. A prompt that begins like one that is being decoded
   * waits until that has passed the common prefix, which is then copied: decoding it twice at the same time would take both longer. A slot
   * stays free for it. `cachedTokens`: the number of a task's prompt tokens that a slot or the prompt cache has.
   */
  next(slots: readonly Slot[], cachedTokens: (task: Task) => number): Task | undefined {
    if (this.length === 0) return undefined;
    let free = slots.filter(({ task }) => !task).length;
    if (free === 0) return undefined;
    const [preempted] = this.#preempted;
    // New tasks would take the cells that it needs.
    if (preempted) return slots.some(({ task }) => task) && !hasCachedPrompt(slots) ? undefined : preempted;
    for (const task of this.#new) {
      if (task.tier === "flex" && !leavesRoom(slots)) continue;
      if (this.#waitsForSibling(task, slots)) continue;
      if (!this.#waitsForPrefix(task, slots, cachedTokens)) return task;
      free--;
      if (free === 0) return undefined;
    }
    return undefined;
  }

  /** Another task of the request is decoding the same prompt, whose cells this one can share afterwards. */
  #waitsForSibling({ request, prompt, usesCache }: Task, slots: readonly Slot[]): boolean {
    if (!this.#sharesPrefixes || !usesCache || prompt.length <= minSharedPromptTokens) return false;
    return slots.some(({ task }) => task?.request === request && task.prompt === prompt && task.promptLeft > 0);
  }

  /** A task in a slot is decoding a prefix of the prompt that no cache has. */
  #waitsForPrefix(waiting: Task, slots: readonly Slot[], cachedTokens: (task: Task) => number): boolean {
    if (!this.#sharesPrefixes || !waiting.usesCache) return false;
    let longest = 0;
    for (const { phase, task, sequence } of slots) {
      if (phase !== "prefill" || !task || task.discardsCache || task.adapters !== waiting.adapters) continue;
      const shared = task.sharablePrefix(commonLength(task.prompt, waiting.prompt));
      if (shared > sequence.length) longest = Math.max(longest, shared);
    }
    return longest >= minSharedPromptTokens && longest >= cachedTokens(waiting) + minSharedPromptTokens;
  }
}

/**
 * Whether a further answer of the lowest tier may run: these take all slots but one, and only one of them begins or runs while an answer of a
 * higher tier does. What a person waits for finds a slot, and shares the decoding with few others.
 */
function leavesRoom(slots: readonly Pick<Slot, "task">[]): boolean {
  const running = slots.flatMap(({ task }) => (task ? [task.tier] : []));
  const flex = running.filter((tier) => tier === "flex").length;
  return flex < (flex < running.length ? 1 : Math.max(1, slots.length - 1));
}

/** An idle slot holds cells that can be freed. */
function hasCachedPrompt(slots: readonly Slot[]): boolean {
  return slots.some(({ task, sequence }) => !task && sequence.length > 0);
}
