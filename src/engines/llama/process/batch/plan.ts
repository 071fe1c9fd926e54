import { chunkSizes, type DecodeCosts } from "./decode-costs.ts";

/*
 * What the next decode takes: a token of each answer, chunks of prompts, or rows of an image. The one that has waited the longest is next:
 *
 * - An answer that has waited for a chunk gets a token before the next chunk.
 * - Images and prompts take turns, because rows of an image cannot be in a batch with tokens.
 * - Answers and prompts are decoded together or take turns (`takesTurns`). A chunk takes as long as those who wait allow (`batchTime`).
 * - The oldest prompt is first, in turns with the shortest one if that is much shorter (`inPrefillOrder`).
 * - Answers are decoded together, or one after another where that is faster (`decodesOneByOne`).
 */

/** A slot with a task, as far as the plan depends on it. */
export interface PlannedSlot {
  readonly id: number;
  /** Newer tasks have larger numbers. */
  readonly order: number;
  /** Tokens of the prompt to decode; 0: it has an answer, and `generated` counts its tokens. */
  readonly promptLeft: number;
  readonly generated: number;
  /** Tokens that a chunk of the prompt has at most; 0 at an image. */
  readonly chunkLimit: number;
  /** The logits of each token of the prompt are needed. */
  readonly readsPrompt: boolean;
}

/** What is remembered of earlier decodes, which are numbered from 1. */
export interface PlanState {
  readonly decodes: number;
  /** The last decode of each slot, by its id. */
  readonly last: ReadonlyMap<number, number>;
  /** The last decode with a chunk of a prompt. */
  readonly lastChunk: number;
  /** Prompt tokens that are processed as if others waited, because an arrival has aborted their decode. */
  readonly recovering: number;
  /** Other work than that of the slots waits for the decode. */
  readonly othersWait: boolean;
}

export const firstState: PlanState = {
  decodes: 0,
  last: new Map(),
  lastChunk: 0,
  recovering: 0,
  othersWait: false,
};

export interface PrefillLimits {
  /** Tokens of a batch. */
  readonly maxTokens: number;
  /** Longest time in milliseconds that a batch may take while others wait for it. */
  readonly maxGapMs: number;
  /** Longest time in milliseconds that a batch may take in any case. */
  readonly maxBatchMs: number;
}

export interface PlanLimits extends PrefillLimits {
  /** Tokens of a batch whose logits can be read. */
  readonly maxOutputs: number;
  /**
   * Otherwise llama.cpp splits a batch by the number of tokens per sequence and computes the parts one after another (llama-batch.cpp,
   * `split_equal`): all slots in a batch have the same number of tokens.
   */
  readonly unifiedKv: boolean;
}

/** What the next decode takes. */
export interface Plan<Slot> {
  readonly shares: readonly { readonly slot: Slot; readonly tokens: number }[];
  /** The answers that get a token in this decode or in the next ones, before another chunk. */
  readonly round: readonly Slot[];
  /** It begins a round without prompts: the answers may be decoded together, with drafts. */
  readonly mayDraft: boolean;
  /** It takes long because no answer, and no short prompt, waits for it. Work that arrives may abort it. */
  readonly isAbortable: boolean;
  /** It takes rows of an image: as many as the share says, or all that attend to each other. */
  readonly isImage: boolean;
}

const plain = { mayDraft: false, isAbortable: false, isImage: false };

/**
 * llama.cpp computes flash attention in tiles of this number of tokens, and for fewer tokens with much slower code (ggml-cpu,
 * `GGML_FA_TILE_Q`). A 135M model on one thread of an AMD EPYC, after 3,000 tokens: 20 tokens 277 ms, 63 tokens 796 ms, 64 tokens 319 ms,
 * 65 tokens 533 ms, 128 tokens 664 ms.
 */
export const tileTokens = 64;
const minChunkTokens = 16;
/** A smaller size is efficient if a token in it costs at most this multiple of one in a tile. */
const maxTokenCostRatio = 1.25;
/** A chunk may exceed its size by this factor if it completes its prompt: a short rest takes longer. */
const lastChunkFactor = 1.25;
/** Patient prompts and answers wait for this number of gaps. */
const patientGaps = 4;
/** A prompt is short, or is short next to another one if it has at most this share of that one's remaining tokens. */
export const shortPromptTokens: number = 2 * tileTokens;
const shortShare = 1 / 4;
/** An answer has just begun if it has at most this number of tokens. */
const begunTokens = 8;

/** Decides the next decode for slots that can continue, in the order of their ids. There is at least one. */
export function choose<Slot extends PlannedSlot>(
  state: PlanState,
  slots: readonly Slot[],
  costs: DecodeCosts,
  limits: PlanLimits,
): Plan<Slot> {
  const last = ({ id }: PlannedSlot): number => state.last.get(id) ?? 0;
  const prompts = slots.filter(({ promptLeft }) => promptLeft > 0);
  const answers = slots.filter(({ promptLeft }) => promptLeft === 0);
  if (prompts.length === 0) return answerStep(slots, costs, last, true);
  // The last token of a prompt is decoded together with the answers.
  const ready = slots.filter((slot) => slot.promptLeft <= 1 && !isAtImage(slot));
  const step = decodesOneByOne(costs, ready.length) ? answers : ready;
  const isOwed = answers.some((slot) => last(slot) < state.lastChunk);
  if (isOwed || (answers.length > 0 && step.length === slots.length)) return answerStep(step, costs, last, false);
  const image = prompts.find(isAtImage);
  if (image) {
    const others = prompts.filter((slot) => !isAtImage(slot));
    const isTheirTurn = others.length > 0 && others.every((slot) => last(slot) < state.lastChunk);
    if (isTheirTurn) return choose({ ...state, othersWait: true }, [...answers, ...others], costs, limits);
    const alone: BatchTime = { ms: limits.maxBatchMs, min: tileTokens };
    const { size } = chunkSize(answers.length === 0 ? alone : gapTime(answers, costs, limits), costs, limits);
    return { ...plain, shares: [{ slot: image, tokens: size }], round: [], isImage: true };
  }
  const takeTurns = answers.length > 0 && (!limits.unifiedKv || takesTurns(costs));
  const together = takeTurns ? [] : answers;
  const { isAbortable = false, ...time } = batchTime(state, prompts, answers, takeTurns, costs, limits);
  const chunks = fill(inPrefillOrder(prompts, state, last), together.length, chunkSize(time, costs, limits), limits);
  const shares = [...together.map((slot) => ({ slot, tokens: 1 })), ...chunks];
  return { ...plain, shares, round: answers, isAbortable };
}

function isAtImage({ promptLeft, chunkLimit }: PlannedSlot): boolean {
  return promptLeft > 0 && chunkLimit === 0;
}

/** The state after a decode of these slots. */
export function after(state: PlanState, slots: readonly Pick<PlannedSlot, "id">[], promptTokens: number): PlanState {
  const decodes = state.decodes + 1;
  const last = new Map(state.last);
  for (const { id } of slots) last.set(id, decodes);
  return {
    ...state,
    decodes,
    last,
    lastChunk: promptTokens > 0 ? decodes : state.lastChunk,
    recovering: Math.max(0, state.recovering - promptTokens),
  };
}

/** A token of each slot, or of the one that has waited the longest. */
function answerStep<Slot extends PlannedSlot>(
  slots: readonly Slot[],
  costs: DecodeCosts,
  last: (slot: Slot) => number,
  mayDraft: boolean,
): Plan<Slot> {
  const [first] = slots;
  const oneByOne = decodesOneByOne(costs, slots.length);
  const next = oneByOne ? slots.reduce((oldest, slot) => (last(slot) < last(oldest) ? slot : oldest)) : undefined;
  const shares = (next ? [next] : slots).map((slot) => ({ slot, tokens: 1 }));
  return { ...plain, shares, round: slots, mayDraft: mayDraft && (!next || next === first) };
}

/** How long a batch with prompts may take, and how many tokens it has at least: small chunks cost several times as much per token. */
interface BatchTime {
  readonly ms: number;
  readonly min: number;
  readonly isAbortable?: boolean;
}

/**
 * A prompt for which nothing waits has batches of `maxBatchMs`, and so have short prompts that only wait for each other. Longer prompts of
 * similar lengths are patient: four of 500 tokens of a 135M model are processed 5 % earlier in chunks of 512 tokens than of 128 (two
 * threads). So are answers that have just begun: their prompts have probably arrived with the short ones that are left, and a step of a few
 * answers takes nearly as long as one of all.
 */
function batchTime(
  { recovering, othersWait }: PlanState,
  prompts: readonly PlannedSlot[],
  answers: readonly PlannedSlot[],
  takeTurns: boolean,
  costs: DecodeCosts,
  limits: PlanLimits,
): BatchTime {
  const { maxGapMs, maxBatchMs } = limits;
  const patientMs = Math.min(patientGaps * maxGapMs, maxBatchMs);
  const left = prompts.map(({ promptLeft }) => promptLeft);
  const [shortest, longest] = [Math.min(...left), Math.max(...left)];
  const areShort = longest <= shortPromptTokens;
  if (answers.length === 0 && !othersWait) {
    const isAbortable = recovering === 0;
    const areSimilar = shortest > longest * shortShare;
    if (prompts.length === 1 ? isAbortable : areShort) return { ms: maxBatchMs, min: tileTokens, isAbortable };
    if (prompts.length > 1 && areSimilar) return { ms: patientMs, min: shortPromptTokens, isAbortable };
    if (prompts.length > 1) return { ms: maxGapMs, min: shortPromptTokens };
  } else if (areShort && takeTurns && !othersWait && answers.every(({ generated }) => generated <= begunTokens))
    return { ms: patientMs, min: tileTokens };
  return gapTime(answers, costs, limits);
}

/** The time of a batch for which others wait, with a step of the answers among them. */
function gapTime(answers: readonly PlannedSlot[], costs: DecodeCosts, { maxGapMs }: PrefillLimits): BatchTime {
  const ms = maxGapMs - (answers.length > 0 ? costs.stepMs : 0);
  return { ms, min: efficientTokens(costs, ms) };
}

/** Tokens of a batch without answers, for which others wait. */
export function sharedBatchSize(costs: DecodeCosts, limits: PrefillLimits): number {
  return chunkSize(gapTime([], costs, limits), costs, limits).size;
}

/** The smallest efficient size, or 64 tokens if those take at most `ms`. With the slower code, 32 tokens take about as long as 96. */
function efficientTokens(costs: DecodeCosts, ms: number): number {
  const tileMs = costs.chunkTokenMs(tileTokens);
  let min = tileTokens;
  if (tileMs === undefined) return min;
  for (const size of chunkSizes.toReversed()) {
    const tokenMs = costs.chunkTokenMs(size);
    // A size that was not measured lately is tried once.
    if (tokenMs === undefined) return size;
    if (tokenMs > maxTokenCostRatio * tileMs) return min;
    min = size;
    if (size * tokenMs <= ms) return min;
  }
  return min;
}

interface ChunkSize {
  /** Tokens of a batch, whole tiles if possible. */
  readonly size: number;
  /** The tokens that it may have if that completes prompts: it need not be whole tiles then. */
  readonly most: number;
}

function chunkSize({ ms, min }: BatchTime, costs: DecodeCosts, { maxTokens }: PrefillLimits): ChunkSize {
  const within = (tokens: number): number => Math.floor(ms / (costs.promptTokenMs(tokens) ?? Infinity));
  const tokens = Math.max(min, Math.floor(within(min) / lastChunkFactor));
  const size = tokens - (tokens % (tokens < tileTokens ? minChunkTokens : tileTokens));
  const most = Math.max(lastChunkFactor * size, within(size));
  return { size: Math.min(maxTokens, size), most: Math.min(maxTokens, most) };
}

/** Chunks of prompts for a batch in which each of `answers` answers has a token. */
function fill<Slot extends PlannedSlot>(
  prompts: readonly Slot[],
  answers: number,
  { size, most }: ChunkSize,
  { maxOutputs, unifiedKv }: PlanLimits,
): Plan<Slot>["shares"] {
  const chunks: { slot: Slot; tokens: number }[] = [];
  // Those that are left after one for each slot.
  let outputs = maxOutputs - answers - prompts.length;
  let left = Math.max(1, size - answers);
  let free = Math.max(left, most - answers);
  for (const slot of prompts) {
    const { promptLeft, chunkLimit, readsPrompt } = slot;
    const even = unifiedKv ? undefined : chunks[0]?.tokens;
    const limit = Math.min(chunkLimit, readsPrompt ? outputs + 1 : chunkLimit);
    const tokens = Math.min(even ?? chunkLength(promptLeft, left, free), limit);
    if (tokens <= 0 || tokens > free || (even !== undefined && tokens !== even)) continue;
    chunks.push({ slot, tokens });
    if (readsPrompt) outputs -= tokens - 1;
    free -= tokens;
    left -= tokens;
  }
  return chunks;
}

/** All tokens if they are at most `free`; else `size`, less what the rest lacks to a tile, because a short rest costs more than a tile. */
function chunkLength(promptLeft: number, size: number, free: number): number {
  if (promptLeft <= free) return promptLeft;
  const lacking = Math.max(0, tileTokens - (promptLeft - size));
  return size >= 2 * tileTokens ? size - lacking : size;
}

/**
 * The oldest prompt first, in turns with the shortest one if that is short next to it: neither does a short prompt wait for a long one, nor a
 * long one for short prompts that keep coming. Prompts of similar lengths do not take turns: all would have to wait until nearly all are
 * complete.
 */
function inPrefillOrder<Slot extends PlannedSlot>(
  prompts: readonly Slot[],
  { lastChunk }: PlanState,
  last: (slot: Slot) => number,
): readonly Slot[] {
  const inOrder = prompts.toSorted((one, other) => one.order - other.order);
  const byLength = prompts.toSorted((one, other) => one.promptLeft - other.promptLeft);
  const [[oldest], [shortest]] = [inOrder, byLength];
  if (!oldest || !shortest || shortest.promptLeft > oldest.promptLeft * shortShare) return inOrder;
  return last(oldest) < lastChunk ? inOrder : byLength;
}

/**
 * Answers and prompts take turns if a prompt token takes this multiple of the time otherwise. More than 1, because the duration of a step of the
 * answers alone may have been measured with shorter contexts.
 */
const minTurnGain = 1.1;

/**
 * Whether answers and the chunks of prompts take turns in a unified KV cache, or are decoded together. Together, the model's weights are read
 * once for both. But flash attention computes tiles of 64 tokens, each with all cells that any of its tokens attends to: next to an answer
 * with a long context, all tokens of a tile pay for that context. With two contexts of 30,000 tokens on a model of 15M, a chunk of 63 tokens
 * and a token of an answer took 247 ms together, and 165 ms one after the other (one thread of an AMD EPYC). Measured, as it depends on the
 * model, the device and the contexts.
 */
function takesTurns(costs: DecodeCosts): boolean {
  const together = costs.chunkTokenMs("together");
  if (together === undefined) return false;
  const apart = costs.chunkTokenMs("apart");
  return apart === undefined || together > minTurnGain * apart;
}

/** Decoding one by one must take at most this share of a decode of all answers, or noise would decide. */
const oneByOneShare = 0.95;
/** The slower way is measured again after this number of tokens of each answer; later if it was slower by `clearRatio`. */
const remeasureTokens = 256;
const clearRatio = 1.5;
const remeasureTokensIfClear = 1024;

/**
 * Whether answers are decoded one after another rather than in one batch. One batch reads the model's weights once, so it is nearly
 * always faster. But llama.cpp computes a few tokens with other code than a single one, which takes several times as long on some
 * processors: Q8_0 with one thread of an AMD EPYC with AVX-512 took 7 ms for one token, 30 for two, 44 for four, 48 for eight (measured on
 * 2026-11-22 with llama-bench and with these libraries). Four answers are a third faster one by one there.
 */
export function decodesOneByOne(costs: DecodeCosts, answers: number): boolean {
  const together = costs.fastestMs(answers);
  if (answers < 2 || together === undefined) return false;
  const single = costs.fastestMs(1);
  if (single === undefined) return true;
  const ratio = (single * answers) / (together * oneByOneShare);
  const oneByOne = ratio < 1;
  const maxAge = Math.max(ratio, 1 / ratio) < clearRatio ? remeasureTokens : remeasureTokensIfClear;
  return costs.tokensSince(oneByOne ? answers : 1) > maxAge * answers ? !oneByOne : oneByOne;
}
