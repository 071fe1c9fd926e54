import type { NativeContext } from "../c-api/native-context.ts";
import type { RunningSlot } from "../slot/slot.ts";
import type { TokenChunk } from "../slot/image-rows.ts";
import type { Task } from "../slot/task.ts";
import {
  AnswerTurns,
  areSimilar,
  decodesOneByOne,
  draftDepth,
  lastChunkFactor,
  measuresPlain,
  planDrafts,
  PrefillChunkSize,
  PrefillOrder,
  shortPromptTokens,
  tileTokens,
  type DraftDepthOptions,
  type PrefillLimits,
} from "./batch-policies.ts";
import { DecodeCosts, maxDraftTokens, type BatchShape } from "./decode-costs.ts";

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
  /** It is large because no answer, and no short prompt, waits for it. Work that arrives may abort it. */
  readonly isAbortable: boolean;
  /** Its tokens are rows of an image. */
  readonly isImage?: true;
}

/** Whether drafts are decoded: never, where they are worth their cost, or always. */
export type Speculation = "off" | "auto" | "always";

type Part = Omit<BatchShare, "index">;

/** Number of batches without drafts after one that did not fit into the KV cache with its drafts. */
const draftPause = 64;

/**
 * Chooses what the next decode evaluates: one token of each answer, chunks of prompts, and drafts for answers where they are worth their
 * cost and no prompt is in the batch. Where it is faster, answers are decoded one after another.
 *
 * Without a unified KV cache, llama.cpp splits a batch by the number of tokens per sequence and computes the parts one after another
 * (llama-batch.cpp, `split_equal`). So answers and prompts take turns there, except for the last token of a prompt, and the chunks of a batch
 * have the same length. With a unified KV cache, they take turns where that is measured to be faster (`AnswerTurns`).
 */
export class BatchPlanner {
  readonly costs: DecodeCosts = new DecodeCosts();
  readonly #context: NativeContext;
  readonly #maxTokens: number;
  readonly #speculation: Speculation;
  readonly #chunkSize: PrefillChunkSize;
  readonly #prefillOrder = new PrefillOrder();
  readonly #turns = new AnswerTurns();
  /** The sequence that was decoded last of those that are decoded one by one. */
  #lastSequence = -1;
  /** Tokens of answers that are decoded before the next chunk of a prompt. */
  #owedAnswers = 0;
  /** Whether answers wait for the last batch, and for how many milliseconds they have waited since they got a token. */
  #answersWait = false;
  #waitedMs = 0;
  /** Remaining batches without drafts. */
  #draftPause = 0;
  /** The last batch had rows of an image, so that it is the turn of the other slots. */
  #wasImage = false;
  /** Remaining prompt tokens that are processed as if others waited. */
  #sharedTokens = 0;

  constructor(options: {
    readonly context: NativeContext;
    readonly prefill: PrefillLimits;
    readonly speculation: Speculation;
  }) {
    const { context, prefill, speculation } = options;
    this.#context = context;
    this.#maxTokens = prefill.maxTokens;
    this.#speculation = speculation;
    this.#chunkSize = new PrefillChunkSize(this.costs, prefill);
  }

  /**
   * Fills llama.cpp's batch for the next decode. `slots`: those that can continue, in the order of their sequences. `othersWait`: other
   * work than that of the slots waits for the decode.
   */
  next(slots: readonly RunningSlot[], othersWait = false): Batch {
    const prompts = slots.filter(({ task }) => task.promptLeft > 0);
    if (prompts.length === 0) {
      this.#owedAnswers = 0;
      return this.#answers(slots, true);
    }
    const atImage = prompts.find(({ task }) => task.isAtImage);
    if (atImage) {
      const others = this.#wasImage ? slots.filter(({ task }) => !task.isAtImage) : [];
      this.#wasImage = others.length === 0;
      const isShared = slots.some(({ task }) => task.promptLeft === 0);
      return others.length === 0 ? this.#image(atImage, isShared) : this.next(others, true);
    }
    const answers = slots.filter(({ task }) => task.promptLeft === 0);
    const { unifiedKv } = this.#context;
    const takeTurns = answers.length > 0 && (!unifiedKv || this.#turns.takesTurns);
    const isBurst = takeTurns && !othersWait && areShort(prompts) && haveBegun(answers);
    const burst = isBurst ? this.#chunkSize.burst(this.#waitedMs) : 0;
    if (takeTurns) {
      const ready = slots.filter(({ task }) => task.promptLeft <= 1);
      const oneToken = decodesOneByOne(this.costs, ready.length) ? answers : ready;
      const continuesBurst = burst > 0 && this.#waitedMs > 0;
      if (oneToken.length === slots.length || (this.#owedAnswers > 0 && !continuesBurst)) {
        const batch = this.#answers(oneToken, false);
        this.#owedAnswers -= batch.answers;
        return batch;
      }
    }
    this.#owedAnswers = answers.length;
    this.#answersWait = takeTurns;
    const inBatch = takeTurns ? [] : answers;
    const mayInterrupt = this.#sharedTokens <= 0;
    const onlyPrompts = answers.length === 0 && !othersWait;
    const isWhole = onlyPrompts && (slots.length === 1 ? mayInterrupt : areShort(prompts));
    const several = onlyPrompts && slots.length > 1;
    const isLong = several && areSimilar(prompts);
    const isAbortable = (isWhole || isLong) && mayInterrupt;
    const among = isLong ? this.#chunkSize.amongSimilarPrompts : this.#chunkSize.amongPrompts;
    const shared = several ? among : this.#chunkSize.shared(answers.length > 0);
    const size = isWhole ? this.#chunkSize.alone : burst || shared;
    const isFixed = isWhole || burst > 0;
    const most = isFixed ? size * lastChunkFactor : this.#chunkSize.completing(size, answers.length > 0);
    const chunks = this.#chunks(this.#prefillOrder.next(prompts), { size, most, answers: inBatch.length });
    return { ...this.#fill([...inBatch.map((slot) => answerPart(slot)), ...chunks]), isAbortable };
  }

  /** Whether the prompt of a task that has just arrived would be decoded together with the batch if that started now. */
  joins(task: Task, { isAbortable, promptTokens, shares }: Batch): boolean {
    return isAbortable && areShort([{ task }, ...shares]) && promptTokens + task.promptLeft <= this.#maxTokens;
  }

  /**
   * The last batch was aborted because work has arrived. The prompt continues in batches that are not aborted for that, until they have
   * processed as much as it may have lost: else requests that keep coming would starve it.
   */
  interrupted(): void {
    this.#sharedTokens = this.#maxTokens;
  }

  /** Whether the next batch may have drafts: it has answers only, and it is time for a draft. */
  considersDrafts(slots: readonly RunningSlot[]): boolean {
    if (this.#speculation === "off" || this.#draftPause > 0 || !this.#canRollBack(slots)) return false;
    if (slots.length === 0 || slots.some(({ task }) => task.promptLeft > 0)) return false;
    if (this.#speculation === "auto" && measuresPlain(this.costs, slots.length)) return false;
    const isInRound = slots.some(({ sequence }) => sequence.id > this.#lastSequence);
    return !(isInRound && decodesOneByOne(this.costs, slots.length));
  }

  /** The depth of drafts that pays, as `draftDepth`; 0 for none. `rates`: of the answers that can have drafts. */
  draftDepth(
    slots: readonly RunningSlot[],
    rates: readonly number[],
    options: Pick<DraftDepthOptions, "maxDepth" | "minGain" | "draftingMs" | "ofText">,
  ): number {
    const oneByOneMs = this.#oneByOneMs(slots.length);
    return draftDepth(this.costs, rates, {
      ...options,
      answers: slots.length,
      isEven: this.#isEven,
      oneByOneMs,
    });
  }

  /** All drafts of a batch have the same length: otherwise llama.cpp computes the part that all answers have, and then the rest. */
  get #isEven(): boolean {
    return !this.#context.unifiedKv || this.#context.maxRollback !== Infinity;
  }

  /** Milliseconds of a token for each answer, if answers are decoded one by one. */
  #oneByOneMs(answers: number): number | undefined {
    const singleMs = decodesOneByOne(this.costs, answers) ? this.costs.fastestMs(1) : undefined;
    return singleMs === undefined ? undefined : singleMs * answers;
  }

  /** Expected duration of a decode in milliseconds; 0 if nothing is known. */
  expectedMs(batch: Batch): number {
    return this.costs.expectedMs(batch);
  }

  /** Records that decoding the batch took `ms`. */
  observe(batch: Batch, ms: number): void {
    this.costs.observe(batch, ms);
    this.#observeTurns(batch, ms);
    this.#waitedMs = batch.answers > 0 || !this.#answersWait ? 0 : this.#waitedMs + ms;
    this.#sharedTokens -= batch.promptTokens;
  }

  /** Chunks of less than a tile are computed with other code. */
  #observeTurns({ answers, promptTokens, isImage }: Batch, ms: number): void {
    if (!this.#context.unifiedKv || isImage || answers + promptTokens < tileTokens) return;
    if (answers === 0 && !this.#answersWait) return;
    const stepMs = this.costs.roundMs(answers);
    if (answers === 0) this.#turns.observe(promptTokens, ms, false, 0);
    else if (stepMs !== undefined && promptTokens > 0) this.#turns.observe(promptTokens, ms, true, stepMs);
  }

  /** Called when the KV cache has no free cells for a batch. Returns whether a batch without drafts may fit. */
  canShrink({ draftTokens }: Batch): boolean {
    if (draftTokens > 0) this.#draftPause = draftPause;
    return draftTokens > 0;
  }

  /**
   * A token of each answer with its draft, or a token of the next one where answers are decoded one by one. The slots may include prompts of
   * which one token is left.
   */
  #answers(slots: readonly RunningSlot[], mayDraft: boolean): Batch {
    const oneByOne = decodesOneByOne(this.costs, slots.length);
    const following = slots.find(({ sequence }) => sequence.id > this.#lastSequence);
    const next = oneByOne ? (following ?? slots[0]) : undefined;
    // Drafts are considered once in each round.
    const drafts = mayDraft && (!next || !following) ? this.#drafts(slots, oneByOne) : undefined;
    if (!next || drafts) return this.#fill(slots.map((slot, at) => answerPart(slot, drafts?.[at])));
    this.#lastSequence = next.sequence.id;
    return { ...this.#fill([answerPart(next)]), round: slots.length };
  }

  /**
   * Chunks of prompts for a batch of about `size` tokens, or `most` if that completes prompts. `answers`: tokens of the batch that are
   * reserved for answers.
   */
  #chunks(
    prompts: readonly RunningSlot[],
    { size, most, answers }: { readonly size: number; readonly most: number; readonly answers: number },
  ): Part[] {
    const parts: Part[] = [];
    let outputs = this.#context.maxOutputs - answers - prompts.length;
    let left = Math.max(1, Math.min(size, this.#maxTokens) - answers);
    let free = Math.max(left, Math.min(most, this.#maxTokens) - answers);
    for (const slot of prompts) {
      const { task } = slot;
      const length = this.#context.unifiedKv ? undefined : parts[0]?.chunk.tokens.length;
      const max = length ?? chunkLength(task.promptLeft, left, free);
      if (max <= 0 || max > free || task.promptLeft < max) continue;
      const chunk = task.promptChunk(max, outputs + 1);
      if (length !== undefined && chunk.tokens.length !== length) continue;
      parts.push({ slot, task, chunk });
      outputs -= Math.max(0, chunk.outputs - 1);
      free -= chunk.tokens.length;
      left -= chunk.tokens.length;
    }
    return parts;
  }

  /** Rows of an image, which cannot be in a batch with tokens. `isShared`: answers wait for it. */
  #image(slot: RunningSlot, isShared: boolean): Batch {
    const { task, sequence } = slot;
    const chunk = task.rowChunk(this.#maxTokens, isShared ? this.#chunkSize.shared(true) : this.#maxTokens);
    const { rows, positions, nonCausal, outputs, tokens } = chunk;
    this.#context.setRows({ rows, positions, nonCausal, sequence: sequence.id, wantsLogits: outputs > 0 });
    return {
      shares: [{ slot, task, chunk, index: 0 }],
      answers: 0,
      round: 0,
      promptTokens: tokens.length,
      draftTokens: 0,
      isAbortable: false,
      isImage: true,
    };
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

  /** The drafts to decode for each slot; `undefined` if there are none. `oneByOne`: how answers are decoded without drafts. */
  #drafts(slots: readonly RunningSlot[], oneByOne: boolean): readonly (readonly number[])[] | undefined {
    if (this.#speculation === "off" || !this.#canRollBack(slots)) return undefined;
    const free = Math.min(this.#context.maxOutputs, this.#maxTokens) - slots.length;
    const maxTokens = this.#draftPause > 0 ? 0 : Math.min(maxDraftTokens, free);
    if (this.#draftPause > 0) this.#draftPause--;
    const drafts = slots.map(({ task }) => task.draft(maxTokens));
    if (drafts.every(({ tokens }) => tokens.length === 0)) return undefined;
    const oneByOneMs = oneByOne ? this.#oneByOneMs(slots.length) : undefined;
    const lengths = planDrafts(
      this.costs,
      drafts.map(({ probabilities }) => probabilities),
      {
        answers: slots.length,
        maxTokens,
        always: this.#speculation === "always",
        isEven: this.#isEven,
        oneByOneMs,
      },
    );
    if (lengths.every((length) => length === 0)) return undefined;
    return drafts.map(({ tokens }, at) => tokens.slice(0, lengths[at] ?? 0));
  }

  /**
   * Whether rejected tokens of all slots could be removed after a batch. llama.cpp splits the batch of a recurrent model where lengths differ
   * or, without a unified KV cache, numbers of sequences are missing. Then a part may move the states of sequences of another part, but not
   * the states that the removal needs (llama-memory-recurrent.cpp, `find_slot`).
   */
  #canRollBack(slots: readonly RunningSlot[]): boolean {
    const { maxRollback, unifiedKv } = this.#context;
    const first = slots[0]?.sequence.id ?? 0;
    return maxRollback === Infinity || unifiedKv || slots.every(({ sequence }, at) => sequence.id === first + at);
  }
}

/**
 * Prompts that arrive together and are so short that they take less time in one batch than one after another: then none waits longer for
 * its first token on average, because no answers are decoded between them, a few at a time.
 */
function areShort(prompts: readonly { readonly task: Task }[]): boolean {
  return prompts.every(({ task }) => task.promptLeft <= shortPromptTokens);
}

/** An answer has just begun if it has at most this number of tokens. */
const begunTokens = 8;

/**
 * The answers have just begun, so that the prompts have probably arrived with theirs. Without a unified KV cache, a step of the answers
 * between prompts costs nearly as much as one of all answers later: 16 prompts of 48 tokens, answered at the same time, were processed one
 * by one with 15 such steps between them.
 */
function haveBegun(answers: readonly { readonly task: Task }[]): boolean {
  return answers.every(({ task }) => task.answer.counts.generated <= begunTokens);
}

/** All tokens if they are at most `free`; else `size`, less what the rest lacks to a tile, because a short rest costs more than a tile. */
function chunkLength(promptLeft: number, size: number, free: number): number {
  if (promptLeft <= free) return promptLeft;
  const lacking = Math.max(0, tileTokens - (promptLeft - size));
  return size >= 2 * tileTokens ? size - lacking : size;
}

/** The next token of an answer with its draft, or the last one of a prompt. */
function answerPart(slot: RunningSlot, draft?: readonly number[]): Part {
  const { task } = slot;
  return { slot, task, chunk: task.promptLeft > 0 ? task.promptChunk(1, 1) : task.answerChunk(draft) };
}
