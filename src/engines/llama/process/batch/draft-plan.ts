import { draftSizes, maxDraftTokens, type DecodeCosts } from "./decode-costs.ts";
import { decodesOneByOne } from "./plan.ts";

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
  /** Takes all drafts, whether they are worth their cost or not. */
  readonly always: boolean;
  /** All answers have the same number of draft tokens, because other batches are computed in parts. */
  readonly isEven?: boolean;
  /** The factor by which drafts must raise the expected tokens per second; default 1.08. */
  readonly minGain?: number;
  /** How long it takes to make drafts of these lengths, in milliseconds, if they are not made yet. */
  readonly draftingMs?: (lengths: readonly number[]) => number;
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
  { answers, maxTokens, always, isEven = false, minGain = minDraftGain, draftingMs }: DraftPlanOptions,
): readonly number[] {
  const nothing = probabilities.map(() => 0);
  const together = costs.decodeMs(answers, 0);
  const singleMs = decodesOneByOne(costs, answers) ? costs.fastestMs(1) : undefined;
  const plainMs = always ? 0 : singleMs === undefined ? together : singleMs * answers;
  if (plainMs === undefined || (!always && costs.draftStreak >= plainDecodeInterval)) return nothing;
  const lengths = [...nothing];
  const gains = probabilities.map(() => 1);
  let gained = 0;
  let best = nothing;
  let bestRate = (minGain * answers) / plainMs;
  for (let tokens = 0; ;) {
    const longer = isEven ? everyDraft(probabilities, lengths) : likeliestDraft(probabilities, lengths);
    tokens += longer.length;
    if (longer.length === 0 || tokens > maxTokens) break;
    for (const at of longer) {
      const length = lengths[at] ?? 0;
      const probability = probabilities[at]?.[length] ?? 0;
      lengths[at] = length + 1;
      gains[at] = (gains[at] ?? 0) + probability;
      gained += probability;
    }
    if (always) best = [...lengths];
    if (always || !isDraftSize(isEven ? (lengths[0] ?? 0) : tokens)) continue;
    const ms = costs.draftMs(answers, tokens, together ?? plainMs) + (draftingMs?.(lengths) ?? 0);
    const slowest = probabilities.length < answers ? 1 : Math.min(...gains);
    const rate = (answers + gained) / ms;
    if (rate <= bestRate || slowest / ms < minSpeedShare / plainMs) continue;
    bestRate = rate;
    best = [...lengths];
  }
  return best;
}

/** Less than 1, so that the next token of a shorter draft is likelier. */
const maxRate = 0.999;

export interface DraftDepthOptions extends Pick<DraftPlanOptions, "answers" | "isEven" | "minGain"> {
  /** Draft tokens of an answer at most. */
  readonly maxDepth: number;
  /** How long it takes to draft a number of tokens for each of the answers, in milliseconds. */
  readonly draftingMs: (depth: number) => number;
  /** The drafts that other answers have from their text, as the probabilities of `planDrafts`. */
  readonly ofText?: readonly (readonly number[])[];
}

/**
 * How many tokens a model should draft for each answer; 0 if drafts do not pay. `rates`: for each answer that can have a draft, how often
 * its draft tokens are accepted.
 */
export function draftDepth(
  costs: DecodeCosts,
  rates: readonly number[],
  { maxDepth, draftingMs, ofText = [], ...options }: DraftDepthOptions,
): number {
  const ofModel = rates.map((rate) => Array.from({ length: maxDepth }, (_, at) => Math.min(rate, maxRate) ** (at + 1)));
  const depth = (lengths: readonly number[]): number => Math.max(0, ...lengths.slice(0, rates.length));
  const lengths = planDrafts(costs, [...ofModel, ...ofText], {
    ...options,
    maxTokens: maxDraftTokens,
    always: false,
    draftingMs: (planned) => draftingMs(depth(planned)),
  });
  return depth(lengths);
}

/** Whether the next batch is decoded without drafts, because the cost of that is unknown or is measured again. */
export function measuresPlain(costs: DecodeCosts, answers: number): boolean {
  return costs.draftStreak >= plainDecodeInterval || costs.decodeMs(answers, 0) === undefined;
}

function isDraftSize(tokens: number): boolean {
  return (draftSizes as readonly number[]).includes(tokens);
}

/** All drafts, if each has a next token. */
function everyDraft(probabilities: readonly (readonly number[])[], lengths: readonly number[]): readonly number[] {
  const hasNext = probabilities.every((own, at) => (own[lengths[at] ?? 0] ?? 0) > 0);
  return hasNext ? [...probabilities.keys()] : [];
}

/** The draft whose next token is the likeliest to be accepted; none if no draft has one. */
function likeliestDraft(probabilities: readonly (readonly number[])[], lengths: readonly number[]): readonly number[] {
  const next = probabilities.map((own, at) => own[lengths[at] ?? 0] ?? 0);
  const largest = Math.max(...next);
  return largest > 0 ? [next.indexOf(largest)] : [];
}
