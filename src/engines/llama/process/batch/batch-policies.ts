import { chunkSizes, draftSizes, type DecodeCosts } from "./decode-costs.ts";

/*
 * Decisions about batches: the order of prompts, and from measured costs how many prompt tokens a batch takes, whether answers are decoded
 * together or one after another, and how much of each speculative draft is decoded.
 */

/**
 * Target duration of a prefill chunk, in milliseconds. Where one token for each answer takes more than half of it (a large model, a slow
 * machine), the target is twice that step: each chunk pays the fixed cost of a decode, and smaller ones would pay little else.
 */
const chunkTargetMs = 50;
const minChunkTokens = 16;
/** A larger chunk size is worth it if its cost per token is at most this share of the smaller size's. */
const largerChunkShare = 0.75;
/** Longest duration of the minimum chunk size, and of a size that is tried for the first time, in milliseconds. */
const maxMinChunkMs = 250;
const maxTrialMs = 125;
/** Where no answer waits, a chunk may take this multiple of its target duration. */
const maxChunkFactor = 8;
/** Longest duration of the chunks of several prompts in a batch with answers, in milliseconds. */
const maxChunksMs = 400;

/**
 * The number of prompt tokens in a batch, adjusted to how long chunks take.
 *
 * llama.cpp computes batches of different sizes with different code, so that a token in a larger one may cost half as much or less (135M
 * model on one thread of an AMD EPYC: 18 tokens 45 ms, 48 tokens 108 ms, 64 tokens 136 ms). The minimum is therefore the smallest size
 * after which larger ones gain little. A size that was not measured is tried if it is not expected to take long.
 */
export class PrefillChunkSize {
  readonly #costs: DecodeCosts;
  readonly #max: number;
  #tokens: number;

  /** `max`: tokens of a batch that are available to prompts. */
  constructor(costs: DecodeCosts, max: number) {
    this.#costs = costs;
    this.#max = Math.max(minChunkTokens, max);
    this.#tokens = Math.min(64, this.#max);
  }

  /** The current size for one prompt, in tokens. */
  get tokens(): number {
    return this.#tokens;
  }

  /**
   * The size for a batch with this number of answers, for this number of waiting prompts. Each prompt adds the time of a chunk, up to
   * 400 ms in all: once prefilled, its answer joins the batch at little cost.
   */
  tokensFor(answers: number, prompts: number): number {
    const tokenMs = this.#costs.promptTokenMs(this.#tokens);
    if (tokenMs === undefined) return this.#tokens;
    const factor = answers === 0 ? maxChunkFactor : Math.min(maxChunkFactor, prompts);
    const ms =
      answers === 0
        ? factor * this.#targetMs
        : Math.min(factor * this.#targetMs, Math.max(maxChunksMs, this.#targetMs));
    const withinTime = Math.max(this.#tokens, ms / tokenMs);
    return Math.round(Math.min(this.#max, this.#tokens * factor, withinTime));
  }

  /** Adjusts the size after a decode with this number of prompt tokens took `ms`. */
  observe(promptTokens: number, ms: number): void {
    // The short last chunk of a prompt says little about the cost of a token.
    if (promptTokens < this.#tokens / 2) return;
    const ideal = (this.#targetMs * promptTokens) / Math.max(0.001, ms);
    // One slow decode on a busy machine halves the size at most; one fast decode doubles it.
    const next = Math.min(this.#tokens * 2, Math.max(this.#tokens / 2, ideal));
    this.#tokens = Math.round(Math.min(this.#max, Math.max(this.#minTokens, next)));
  }

  get #targetMs(): number {
    return Math.max(chunkTargetMs, 2 * this.#costs.stepMs);
  }

  get #minTokens(): number {
    let chosen: number = chunkSizes[0];
    let chosenMs = this.#costs.chunkTokenMs(chosen);
    if (chosenMs === undefined) return minChunkTokens;
    for (const size of chunkSizes.slice(1)) {
      const tokenMs = this.#costs.chunkTokenMs(size);
      if (tokenMs === undefined) return size * chosenMs <= maxTrialMs ? size : chosen;
      if (tokenMs > chosenMs * largerChunkShare || tokenMs * size > maxMinChunkMs) continue;
      chosen = size;
      chosenMs = tokenMs;
    }
    return chosen;
  }
}

/** A slot whose prompt is not in the KV cache completely. */
export interface WaitingPrompt {
  readonly task: { readonly promptLeft: number; readonly order: number };
}

/**
 * The order in which prompts are prefilled: alternately the shortest remaining one first, so that it does not wait for a long one, and the
 * oldest first, so that short prompts that keep coming do not starve it.
 */
export class PrefillOrder {
  #shortestFirst = true;

  next<Prompt extends WaitingPrompt>(prompts: readonly Prompt[]): readonly Prompt[] {
    const shortestFirst = this.#shortestFirst;
    this.#shortestFirst = !shortestFirst;
    return prompts.toSorted(
      ({ task: one }, { task: other }) =>
        (shortestFirst ? one.promptLeft - other.promptLeft : 0) || one.order - other.order,
    );
  }
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
  { answers, maxTokens, oneByOneMs, always }: DraftPlanOptions,
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
    const next = likeliestDraft(probabilities, lengths);
    if (next === undefined) break;
    const probability = probabilities[next]?.[lengths[next] ?? 0] ?? 0;
    lengths[next] = (lengths[next] ?? 0) + 1;
    gains[next] = (gains[next] ?? 0) + probability;
    gained += probability;
    if (always) best = lengths;
    if (always || !(draftSizes as readonly number[]).includes(tokens)) continue;
    const ms = costs.draftMs(answers, tokens, together ?? plainMs);
    const slowest = probabilities.length < answers ? 1 : Math.min(...gains);
    const rate = (answers + gained) / ms;
    if (rate <= bestRate || slowest / ms < minSpeedShare / plainMs) continue;
    bestRate = rate;
    best = [...lengths];
  }
  return best;
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
