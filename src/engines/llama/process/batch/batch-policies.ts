import { chunkSizes, draftSizes, maxDraftTokens, type DecodeCosts } from "./decode-costs.ts";

/*
 * Decisions about batches: the order of prompts, and from measured costs how many prompt tokens a batch takes, whether answers are decoded
 * together or one after another, and how much of each speculative draft is decoded.
 */

/**
 * llama.cpp computes flash attention in tiles of this number of tokens, and for fewer tokens with much slower code (ggml-cpu,
 * `GGML_FA_TILE_Q`). A 135M model on one thread of an AMD EPYC, after 3,000 tokens: 20 tokens 277 ms, 63 tokens 796 ms, 64 tokens 319 ms,
 * 65 tokens 533 ms, 128 tokens 664 ms.
 */
export const tileTokens = 64;
/**
 * A batch of fewer tokens costs more per token (a 135M model on one thread of an AMD EPYC: 48 tokens 2.19 ms each, 64 2.12, 96 1.93, 128
 * 1.83, 256 1.82).
 */
export const shortPromptTokens: number = 2 * tileTokens;
const minChunkTokens = 16;
/** A smaller size is efficient if a token in it costs at most this multiple of one in a tile. */
const maxTokenCostRatio = 1.25;
/** Prompts of similar lengths, and answers that have just begun, wait for other prompts as long as this number of gaps. */
const longGaps = 4;
/** A chunk may exceed its size by this factor if it completes its prompt. */
export const lastChunkFactor = 1.25;

export interface PrefillLimits {
  /** Tokens of a batch. */
  readonly maxTokens: number;
  /** Longest time in milliseconds that a batch may take while others wait for it. */
  readonly maxGapMs: number;
  /** Longest time in milliseconds that a batch may take in any case. */
  readonly maxBatchMs: number;
}

/**
 * The number of tokens in a batch with prompts, from how long such batches take. Never fewer than the smallest efficient size: small
 * chunks cost several times as much per token, and the more the longer the context is.
 */
export class PrefillChunkSize {
  readonly #costs: DecodeCosts;
  readonly #limits: PrefillLimits;

  constructor(costs: DecodeCosts, limits: PrefillLimits) {
    this.#costs = costs;
    this.#limits = limits;
  }

  /** The size for a prompt for which neither answers nor other prompts wait, in tokens. */
  get alone(): number {
    return this.#within(this.#limits.maxBatchMs, tileTokens);
  }

  /** The size where only other prompts wait, in tokens: without a gap between tokens to limit, all are processed earlier in longer chunks. */
  get amongPrompts(): number {
    return this.#within(this.#limits.maxGapMs / lastChunkFactor, shortPromptTokens);
  }

  /**
   * The same for prompts of similar lengths, none of which should have its first token long before the others. Four prompts of 500 tokens of a
   * 135M model are processed 5 % earlier in chunks of 512 tokens than of 128 (two threads).
   */
  get amongSimilarPrompts(): number {
    return this.#within(this.#longMs, shortPromptTokens);
  }

  /** The size where others wait, in tokens of the whole batch. `answers`: whether answers are among them. */
  shared(answers: boolean): number {
    const ms = this.#limits.maxGapMs / lastChunkFactor - (answers ? this.#costs.stepMs : 0);
    return this.#within(ms, this.#minTokens(ms));
  }

  /**
   * The size for short prompts for which only answers wait that have just begun, in tokens. `waitedMs`: the time since those got a token; 0 is
   * returned where it does not allow another batch.
   */
  burst(waitedMs: number): number {
    const ms = this.#longMs - waitedMs;
    const tileMs = tileTokens * (this.#costs.promptTokenMs(tileTokens) ?? Infinity);
    return waitedMs > 0 && tileMs > ms ? 0 : this.#within(ms, tileTokens);
  }

  /** What a batch of this size may have if that completes prompts: it need not be whole tiles then. */
  completing(size: number, answers: boolean): number {
    const tokenMs = this.#costs.promptTokenMs(size);
    const ms = this.#limits.maxGapMs - (answers ? this.#costs.stepMs : 0);
    return Math.max(lastChunkFactor * size, tokenMs === undefined ? 0 : Math.floor(ms / tokenMs));
  }

  /** How long batches without a token for any answer may take, in milliseconds. */
  get #longMs(): number {
    return Math.min(longGaps * this.#limits.maxGapMs, this.#limits.maxBatchMs);
  }

  /** The number of tokens, `min` or more, whose prefill is expected to take at most `ms`. */
  #within(ms: number, min: number): number {
    const tokenMs = this.#costs.promptTokenMs(min);
    const tokens = tokenMs === undefined ? min : Math.max(min, Math.floor(ms / tokenMs));
    const unit = tokens < tileTokens ? minChunkTokens : tileTokens;
    return Math.min(this.#limits.maxTokens, tokens - (tokens % unit));
  }

  /**
   * The smallest efficient size, or 64 tokens if those take at most `ms`. A size that was not measured lately is tried once: with the
   * slower code, 32 tokens take about as long as 96.
   */
  #minTokens(ms: number): number {
    const tileMs = this.#costs.chunkTokenMs(tileTokens);
    let min: number = tileTokens;
    if (tileMs === undefined) return min;
    for (const size of chunkSizes.toReversed()) {
      const tokenMs = this.#costs.chunkTokenMs(size);
      if (tokenMs === undefined) return size;
      if (tokenMs > maxTokenCostRatio * tileMs) return min;
      min = size;
      if (size * tokenMs <= ms) return min;
    }
    return min;
  }
}

/** A slot whose prompt is not in the KV cache completely. */
export interface WaitingPrompt {
  readonly task: { readonly promptLeft: number; readonly order: number };
}

/** A prompt is short next to another one if it has at most this share of that one's remaining tokens. */
const shortShare = 1 / 4;

/** Whether none of the prompts is short next to another one. */
export function areSimilar(prompts: readonly WaitingPrompt[]): boolean {
  const left = prompts.map(({ task }) => task.promptLeft);
  return Math.min(...left) > Math.max(...left) * shortShare;
}

/**
 * The order in which prompts are prefilled: the oldest one first. Where the shortest one is short next to it, each of the two is first
 * alternately, so that neither a short prompt waits for a long one, nor a long one for short prompts that keep coming. Prompts of similar
 * lengths do not alternate: all would have to wait until nearly all are complete.
 */
export class PrefillOrder {
  #shortestFirst = true;

  next<Prompt extends WaitingPrompt>(prompts: readonly Prompt[]): readonly Prompt[] {
    const inOrder = prompts.toSorted(({ task: one }, { task: other }) => one.order - other.order);
    const oldest = inOrder[0]?.task.promptLeft ?? 0;
    const shortest = Math.min(...prompts.map(({ task }) => task.promptLeft));
    if (shortest > oldest * shortShare) return inOrder;
    const shortestFirst = this.#shortestFirst;
    this.#shortestFirst = !shortestFirst;
    return shortestFirst
      ? inOrder.toSorted(({ task: one }, { task: other }) => one.promptLeft - other.promptLeft)
      : inOrder;
  }
}

/**
 * Answers and prompts take turns if a prompt token takes this multiple of the time otherwise. More than 1, because the duration of a step of the
 * answers alone may have been measured with shorter contexts.
 */
const minTurnGain = 1.1;
/** The slower way is measured again after this number of chunks: it depends on the length of the contexts. */
const turnChunks = 16;

/**
 * Whether answers and the chunks of prompts take turns in a unified KV cache, or are decoded together. Together, the model's weights are read
 * once for both. But flash attention computes tiles of 64 tokens, each with all cells that any of its tokens attends to: next to an answer
 * with a long context, all tokens of a tile pay for that context. With two contexts of 30,000 tokens on a model of 15M, a chunk of 63 tokens
 * and a token of an answer took 247 ms together, and 165 ms one after the other (one thread of an AMD EPYC). Measured, as it depends on the
 * model, the device and the contexts.
 */
export class AnswerTurns {
  /** Milliseconds per prompt token, in addition to those of a step of the answers alone. */
  #together: number | undefined;
  #inTurns: number | undefined;
  /** Chunks since the other way was measured. */
  #chunks = 0;

  /** Whether the next chunk is decoded without the answers. */
  get takesTurns(): boolean {
    if (this.#together === undefined) return false;
    if (this.#inTurns === undefined) return true;
    const isFaster = this.#together > minTurnGain * this.#inTurns;
    return this.#chunks < turnChunks ? isFaster : !isFaster;
  }

  /** A chunk took `ms` with the answers in its batch, or without. `stepMs`: of the answers alone. */
  observe(promptTokens: number, ms: number, together: boolean, stepMs: number): void {
    const before = this.takesTurns;
    const tokenMs = Math.max(0, ms - (together ? stepMs : 0)) / promptTokens;
    if (together) this.#together = smoothed(this.#together, tokenMs);
    else this.#inTurns = smoothed(this.#inTurns, tokenMs);
    this.#chunks = this.#chunks >= turnChunks || this.takesTurns !== before ? 0 : this.#chunks + 1;
  }
}

function smoothed(known: number | undefined, value: number): number {
  return known === undefined ? value : (known + value) / 2;
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
  const slower = oneByOne ? answers : 1;
  const maxAge = Math.max(ratio, 1 / ratio) < clearRatio ? remeasureTokens : remeasureTokensIfClear;
  if (costs.tokensSince(slower) <= maxAge * answers) return oneByOne;
  costs.remeasure(slower);
  return !oneByOne;
}

/** Drafts must raise the expected tokens per second by this factor, which is beyond the noise of measurements. */
const minDraftGain = 1.08;
/** An answer that gains nothing from drafts keeps at least this share of its speed. */
const minSpeedShare = 0.9;
/** After this number of decodes with drafts, one is made without, to measure its current cost. */
const plainDecodeInterval = 32;

export interface DraftPlanOptions {
  /** Answers in the batch, those without a draft included. */
  readonly answers: number;
  /** Draft tokens in all. */
  readonly maxTokens: number;
  /** Milliseconds of a token for each answer without drafts, if they are decoded one by one. */
  readonly oneByOneMs?: number;
  /** Takes all drafts, whether they are worth their cost or not. */
  readonly always: boolean;
  /** All answers have the same number of draft tokens, because other batches are computed in parts. */
  readonly isEven?: boolean;
}

/**
 * How many tokens of each draft to decode: those with which the most tokens per second are expected, if that is more than without drafts
 * and no answer becomes much slower. llama.cpp computes larger batches with other code, so that two more tokens may cost as much as four
 * decodes, and sixteen little more than two.
 *
 * `probabilities`: for each answer with a draft, the probability of each draft token that it and all before it are accepted.
 */
export function planDrafts(
  costs: DecodeCosts,
  probabilities: readonly (readonly number[])[],
  { answers, maxTokens, oneByOneMs, always, isEven = false }: DraftPlanOptions,
): readonly number[] {
  const nothing = probabilities.map(() => 0);
  const together = costs.decodeMs(answers, 0);
  const plainMs = always ? 0 : (oneByOneMs ?? together);
  if (plainMs === undefined || (!always && costs.draftStreak >= plainDecodeInterval)) return nothing;
  const lengths = [...nothing];
  const gains = probabilities.map(() => 1);
  let gained = 0;
  let best = nothing;
  let bestRate = (minDraftGain * answers) / plainMs;
  for (let tokens = 1; tokens <= maxTokens; tokens++) {
    const next = isEven ? shortestDraft(probabilities, lengths) : likeliestDraft(probabilities, lengths);
    if (next === undefined) break;
    const probability = probabilities[next]?.[lengths[next] ?? 0] ?? 0;
    lengths[next] = (lengths[next] ?? 0) + 1;
    gains[next] = (gains[next] ?? 0) + probability;
    gained += probability;
    if (isEven && !isUniform(lengths)) continue;
    if (always) best = [...lengths];
    if (always || !isDraftSize(isEven ? (lengths[0] ?? 0) : tokens)) continue;
    const ms = costs.draftMs(answers, tokens, together ?? plainMs);
    const slowest = probabilities.length < answers ? 1 : Math.min(...gains);
    const rate = (answers + gained) / ms;
    if (rate <= bestRate || slowest / ms < minSpeedShare / plainMs) continue;
    bestRate = rate;
    best = [...lengths];
  }
  return best;
}

/** Whether the next batch is decoded without drafts, because the cost of that is unknown or is measured again. */
export function measuresPlain(costs: DecodeCosts, answers: number): boolean {
  return costs.draftStreak >= plainDecodeInterval || costs.decodeMs(answers, 0) === undefined;
}

export interface DraftDepthOptions extends Pick<DraftPlanOptions, "answers" | "oneByOneMs" | "isEven"> {
  /** Draft tokens of an answer at most. */
  readonly maxDepth: number;
  /** The factor by which drafts must raise the expected tokens per second; default 1.08. */
  readonly minGain?: number;
  /** Expected duration of drafting a number of tokens for each of the answers, in milliseconds. */
  readonly draftingMs: (depth: number) => number;
  /** For each answer that has a draft from its text: how many of its tokens are expected to be accepted. */
  readonly ofText?: readonly number[];
}

/**
 * How many tokens a model should draft for each answer: the number with which the most tokens per second are expected, if that is more than
 * without drafts and no answer becomes much slower; else 0.
 *
 * `rates`: for each answer that can have a draft, how often its draft tokens are accepted.
 */
export function draftDepth(
  costs: DecodeCosts,
  rates: readonly number[],
  { answers, oneByOneMs, isEven = false, maxDepth, draftingMs, ofText = [], minGain = minDraftGain }: DraftDepthOptions,
): number {
  const together = costs.decodeMs(answers, 0);
  const plainMs = oneByOneMs ?? together;
  if (plainMs === undefined) return 0;
  const drafts = rates.length + ofText.length;
  const lowest = drafts < answers ? 0 : Math.min(...rates);
  let gained = 0;
  let leastGained = 0;
  let best = 0;
  let bestRate = (minGain * answers) / plainMs;
  for (let depth = 1; depth <= maxDepth && depth * drafts <= maxDraftTokens; depth++) {
    for (const rate of rates) gained += rate ** depth;
    leastGained += lowest ** depth;
    // `planDrafts` decodes no more than the next smaller of its sizes.
    if (!isEven && !isDraftSize(depth * drafts) && !isDraftSize(depth * drafts - 1)) continue;
    const known = ofText.map((tokens) => Math.min(depth, tokens));
    const ms = costs.draftMs(answers, depth * drafts, together ?? plainMs) + draftingMs(depth);
    const rate = known.reduce((sum, tokens) => sum + tokens, answers + gained) / ms;
    const least = drafts < answers ? 0 : Math.min(leastGained, ...known);
    if (rate <= bestRate || (1 + least) / ms < minSpeedShare / plainMs) continue;
    bestRate = rate;
    best = depth;
  }
  return best;
}

function isDraftSize(tokens: number): boolean {
  return (draftSizes as readonly number[]).includes(tokens);
}

function isUniform(lengths: readonly number[]): boolean {
  return lengths.every((length) => length === lengths[0]);
}

/** The shortest draft, which must have a next token. */
function shortestDraft(probabilities: readonly (readonly number[])[], lengths: readonly number[]): number | undefined {
  const next = lengths.indexOf(Math.min(...lengths));
  return (probabilities[next]?.[lengths[next] ?? 0] ?? 0) > 0 ? next : undefined;
}

/** The draft whose next token is the likeliest to be accepted. */
function likeliestDraft(probabilities: readonly (readonly number[])[], lengths: readonly number[]): number | undefined {
  let best: number | undefined;
  let largest = 0;
  for (const [i, own] of probabilities.entries()) {
    const probability = own[lengths[i] ?? 0] ?? 0;
    if (probability <= largest) continue;
    largest = probability;
    best = i;
  }
  return best;
}
