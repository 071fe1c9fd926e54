import type { NativeContext } from "../c-api/native-context.ts";
import type { RunningSlot } from "../slot/slot.ts";
import type { TokenChunk } from "../slot/image-rows.ts";
import type { Task } from "../slot/task.ts";
import { DecodeCosts, maxDraftTokens, type BatchShape } from "./decode-costs.ts";
import { draftDepth, measuresPlain, planDrafts, type DraftDepthOptions } from "./draft-plan.ts";
import {
  after,
  choose,
  firstState,
  shortPromptTokens,
  type Plan,
  type PlannedSlot,
  type PlanLimits,
  type PrefillLimits,
} from "./plan.ts";

/** The tokens of one slot in a batch. */
export interface BatchShare {
  readonly slot: RunningSlot;
  readonly task: Task;
  readonly chunk: TokenChunk;
  /** Index of its first token in the batch. */
  readonly index: number;
}

/** What one `llama_decode` takes. */
export interface Batch extends BatchShape {
  readonly shares: readonly BatchShare[];
  /** As in its `Plan`. */
  readonly isAbortable: boolean;
}

/** Whether drafts are decoded: never, where they are worth their cost, or always. */
export type Speculation = "off" | "auto" | "always";

type Part = Omit<BatchShare, "index">;

/** A slot as the plan sees it. */
interface Planned extends PlannedSlot {
  readonly slot: RunningSlot;
}

/** Number of decodes without drafts after one that did not fit into the KV cache with its drafts. */
const draftPause = 64;

/** Fills llama.cpp's batch for the next decode: as `choose` plans it, with drafts for answers where they are worth their cost. */
export class BatchPlanner {
  readonly costs: DecodeCosts = new DecodeCosts();
  readonly #context: NativeContext;
  readonly #limits: PlanLimits;
  readonly #speculation: Speculation;
  #state = firstState;
  /** No drafts are made before this decode. */
  #nextDrafts = 0;

  constructor(options: {
    readonly context: NativeContext;
    readonly prefill: PrefillLimits;
    readonly speculation: Speculation;
  }) {
    const { context, prefill, speculation } = options;
    const { maxOutputs, unifiedKv } = context;
    this.#context = context;
    this.#limits = { ...prefill, maxOutputs, unifiedKv };
    this.#speculation = speculation;
  }

  /**
   * Fills llama.cpp's batch for the next decode. `slots`: those that can continue, in the order of their sequences. `othersWait`: other
   * work than that of the slots waits for the decode.
   */
  next(slots: readonly RunningSlot[], othersWait = false): Batch {
    this.#state = { ...this.#state, othersWait };
    const plan = this.#plan(slots);
    const [first] = plan.shares;
    if (plan.isImage && first) return this.#image(first.slot.slot, first.tokens);
    const drafts = plan.mayDraft ? this.#drafts(slots) : undefined;
    if (drafts) return this.#fill(slots.map((slot, at) => partOf(slot, 1, drafts[at])));
    const parts = plan.shares.map(({ slot: { slot }, tokens }) => partOf(slot, tokens));
    return { ...this.#fill(parts), round: plan.round.length, isAbortable: plan.isAbortable };
  }

  /**
   * Whether the prompt of a task that has just arrived would be decoded together with the batch if that started now. Both are short: of several
   * that arrive at the same time, the first one is not decoded alone.
   */
  joins({ promptLeft }: Task, { promptTokens, shares }: Batch): boolean {
    const lengths = [promptLeft, ...shares.map(({ task }) => task.promptLeft)];
    return lengths.every((left) => left <= shortPromptTokens) && promptTokens + promptLeft <= this.#limits.maxTokens;
  }

  /**
   * The last batch was aborted because work has arrived. The prompt continues in batches that are not aborted for that, until they have
   * processed as much as it may have lost: else requests that keep coming would starve it.
   */
  interrupted(): void {
    this.#state = { ...this.#state, recovering: this.#limits.maxTokens };
  }

  /** Whether the next batch may have drafts: it has answers only, and it is time for a draft. */
  considersDrafts(slots: readonly RunningSlot[]): boolean {
    if (!this.#canDraft(slots)) return false;
    if (slots.length === 0 || slots.some(({ task }) => task.promptLeft > 0)) return false;
    if (this.#speculation === "auto" && measuresPlain(this.costs, slots.length)) return false;
    return this.#plan(slots).mayDraft;
  }

  /** The depth of drafts that pays, as `draftDepth`; 0 for none. `rates`: of the answers that can have drafts. */
  draftDepth(
    slots: readonly RunningSlot[],
    rates: readonly number[],
    options: Omit<DraftDepthOptions, "answers" | "isEven">,
  ): number {
    return draftDepth(this.costs, rates, { ...options, answers: slots.length, isEven: this.#isEven });
  }

  /** All drafts of a batch have the same length: otherwise llama.cpp computes the part that all answers have, and then the rest. */
  get #isEven(): boolean {
    return !this.#context.unifiedKv || this.#context.maxRollback !== Infinity;
  }

  /** Records that decoding the batch took `ms`. */
  observe(batch: Batch, ms: number): void {
    this.costs.observe(batch, ms);
    this.#state = after(
      this.#state,
      batch.shares.map(({ slot }) => slot.sequence),
      batch.promptTokens,
    );
  }

  /** Called when the KV cache has no free cells for a batch. Returns whether a batch without drafts may fit. */
  canShrink({ draftTokens }: Batch): boolean {
    if (draftTokens > 0) this.#nextDrafts = this.#state.decodes + draftPause;
    return draftTokens > 0;
  }

  #plan(slots: readonly RunningSlot[]): Plan<Planned> {
    const planned = slots.map((slot): Planned => {
      const { task, sequence } = slot;
      const { order, promptLeft, chunkLimit, readsPrompt, answer } = task;
      return { slot, id: sequence.id, order, promptLeft, chunkLimit, readsPrompt, generated: answer.counts.generated };
    });
    return choose(this.#state, planned, this.costs, this.#limits);
  }

  /** Rows of an image, which cannot be in a batch with tokens. */
  #image(slot: RunningSlot, maxCausal: number): Batch {
    const { task, sequence } = slot;
    const chunk = task.rowChunk(this.#limits.maxTokens, maxCausal);
    const { rows, positions, nonCausal, outputs, tokens } = chunk;
    this.#context.setRows({ rows, positions, nonCausal, sequence: sequence.id, wantsLogits: outputs > 0 });
    const shares = [{ slot, task, chunk, index: 0 }];
    return { shares, answers: 0, round: 0, promptTokens: tokens.length, draftTokens: 0, isAbortable: false };
  }

  #fill(parts: readonly Part[]): Batch {
    const { batch } = this.#context;
    const shares: BatchShare[] = [];
    let answers = 0;
    let promptTokens = 0;
    let draftTokens = 0;
    batch.clear();
    // llama.cpp splits a batch where its sequences do not ascend.
    for (const part of parts.toSorted((one, other) => one.slot.sequence.id - other.slot.sequence.id)) {
      const { slot, task, chunk } = part;
      const { tokens } = chunk;
      if (task.promptLeft > 0) promptTokens += tokens.length;
      else {
        answers++;
        draftTokens += tokens.length - 1;
      }
      const { nextPosition, id } = slot.sequence;
      const index = batch.length;
      const withoutLogits = tokens.length - chunk.outputs;
      for (const [i, token] of tokens.entries()) batch.add(token, nextPosition + i, id, i >= withoutLogits);
      shares.push({ ...part, index });
    }
    return { shares, answers, round: answers, promptTokens, draftTokens, isAbortable: false };
  }

  /** The drafts to decode for each slot; `undefined`: no draft is worth its cost. */
  #drafts(slots: readonly RunningSlot[]): readonly (readonly number[])[] | undefined {
    if (!this.#canDraft(slots)) return undefined;
    const free = Math.min(this.#limits.maxOutputs, this.#limits.maxTokens) - slots.length;
    const maxTokens = Math.min(maxDraftTokens, free);
    const drafts = slots.map(({ task }) => task.draft(maxTokens));
    if (drafts.every(({ tokens }) => tokens.length === 0)) return undefined;
    const probabilities = drafts.map((draft) => draft.probabilities);
    const always = this.#speculation === "always";
    const options = { answers: slots.length, maxTokens, always, isEven: this.#isEven };
    const lengths = planDrafts(this.costs, probabilities, options);
    if (lengths.every((length) => length === 0)) return undefined;
    return drafts.map(({ tokens }, at) => tokens.slice(0, lengths[at] ?? 0));
  }

  /**
   * Whether rejected tokens of all slots could be removed after a batch. llama.cpp splits the batch of a recurrent model where lengths differ
   * or, without a unified KV cache, numbers of sequences are missing. Then a part may move the states of sequences of another part, but not
   * the states that the removal needs (llama-memory-recurrent.cpp, `find_slot`).
   */
  #canDraft(slots: readonly RunningSlot[]): boolean {
    if (this.#speculation === "off" || this.#state.decodes < this.#nextDrafts) return false;
    const { maxRollback, unifiedKv } = this.#context;
    const first = slots[0]?.sequence.id ?? 0;
    return maxRollback === Infinity || unifiedKv || slots.every(({ sequence }, at) => sequence.id === first + at);
  }
}

/** Tokens of a prompt, or the next one of an answer with its draft. */
function partOf(slot: RunningSlot, tokens: number, draft?: readonly number[]): Part {
  const { task } = slot;
  return { slot, task, chunk: task.promptLeft > 0 ? task.promptChunk(tokens) : task.answerChunk(draft) };
}
