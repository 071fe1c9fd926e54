import type { Sampling } from "../../../generation/request.ts";

/**
 * Chooses a token from raw logits as llama.cpp's sampler chain in node-llama-cpp does, in its order: bias, penalties, top-k, top-p,
 * min-p, XTC, temperature, draw. It stands in for that chain where the raw logits are needed, too (logprobs), or where tokens must be
 * biased that the library leaves alone (ends of generation).
 */

/** The likeliest tokens, best first, and what is known of the others. Fetching a whole vocabulary costs tens of milliseconds. */
export interface LogitWindow {
  readonly tokens: readonly number[];
  readonly logits: readonly number[];
  /** How many tokens the vocabulary has beside these; 0: the window is whole. */
  readonly others: number;
  /** Sum of exp(logit − largest logit) over those others. */
  readonly othersWeight: number;
}

/** How often each token was generated, and (for the repeat penalty) which ones stand in the last part of the context. */
export interface History {
  readonly counts: ReadonlyMap<number, number>;
  readonly recent: ReadonlySet<number>;
}

interface Candidate {
  readonly token: number;
  readonly logit: number;
}

/**
 * The drawn token, or null when the window does not decide it and the whole vocabulary is needed: the answer is never approximate.
 * `bias` adds to logits, −Infinity bans. `random` gives uniform numbers in [0, 1); a fixed count of them is used per call, so that a
 * repetition with the whole vocabulary can be given the same ones.
 */
export function drawToken(
  window: LogitWindow,
  sampling: Sampling,
  history: History,
  bias: ReadonlyMap<number, number>,
  [draw, chance]: readonly [draw: number, chance: number],
): number | null {
  if (window.others > 0 && raisesOthers(window, sampling, history, bias)) return null;
  const largestOther = window.others > 0 ? (window.logits.at(-1) ?? -Infinity) : -Infinity;
  let candidates = window.tokens
    .map((token, i) => ({ token, logit: adjusted(token, window.logits[i] ?? -Infinity, sampling, history, bias) }))
    .filter((candidate) => candidate.logit > -Infinity);
  // Adjustments may have changed the order.
  candidates.sort((a, b) => b.logit - a.logit);
  /** Candidates from here on may have been overtaken by tokens outside the window. */
  let certain = candidates.findIndex((candidate) => candidate.logit < largestOther);
  if (certain < 0) certain = candidates.length;
  let othersWeight =
    window.others > 0 ? window.othersWeight * Math.exp((window.logits[0] ?? 0) - maximum(candidates)) : 0;
  let others = window.others;
  const cut = (size: number): void => {
    candidates = candidates.slice(0, Math.max(1, size));
    others = othersWeight = 0;
  };

  const temperature = sampling.temperature ?? 1;
  if (temperature > 0) {
    const topK = sampling.topK ?? 0;
    if (topK > 0 && topK < candidates.length + others) {
      if (others > 0 && topK > certain) return null;
      cut(topK);
    }
    const topP = sampling.topP ?? 1;
    if (topP < 1) {
      const size = nucleus(candidates, othersWeight, topP);
      if (others > 0 && (size === null || size > certain)) return null;
      if (size !== null) cut(size);
    }
    const minP = sampling.minP ?? 0;
    if (minP > 0) {
      const least = maximum(candidates) + Math.log(minP);
      if (others > 0 && largestOther >= least) return null;
      cut(candidates.filter((candidate) => candidate.logit >= least).length);
    }
  }
  const { xtc } = sampling;
  if (xtc && xtc.probability > 0 && xtc.threshold <= 0.5 && chance < xtc.probability) {
    const top = maximum(candidates);
    const total = candidates.reduce((sum, candidate) => sum + Math.exp(candidate.logit - top), othersWeight);
    const probability = (logit: number): number => Math.exp(logit - top) / total;
    if (others > 0 && probability(largestOther) >= xtc.threshold) return null;
    const above = candidates.filter((candidate) => probability(candidate.logit) >= xtc.threshold).length;
    if (above > 1) {
      othersWeight *= Math.exp(top - (candidates[above - 1]?.logit ?? top));
      candidates = candidates.slice(above - 1);
      certain -= above - 1;
    }
  }
  if (temperature <= 0) return others > 0 && certain < 1 ? null : (candidates[0]?.token ?? null);
  return drawWith(candidates, { others, othersWeight, largestOther }, temperature, draw);
}

/** Draws in proportion to exp(logit / temperature). Without all tokens the sum is known within bounds: decided if both agree. */
function drawWith(
  candidates: readonly Candidate[],
  rest: { readonly others: number; readonly othersWeight: number; readonly largestOther: number },
  temperature: number,
  draw: number,
): number | null {
  const top = maximum(candidates);
  const weights = candidates.map((candidate) => Math.exp((candidate.logit - top) / temperature));
  const sum = weights.reduce((a, b) => a + b, 0);
  const [least, most] = restBounds(rest, top, temperature);
  const at = (total: number): number => {
    let left = draw * total;
    return weights.findIndex((weight) => (left -= weight) < 0);
  };
  const index = at(sum + least);
  if (index >= 0) return rest.others > 0 && at(sum + most) !== index ? null : (candidates[index]?.token ?? null);
  // Rounding may leave nothing: then it is the last one.
  return rest.others > 0 ? null : (candidates.at(-1)?.token ?? null);
}

/**
 * Bounds for the sum of exp((logit − top) / temperature) over tokens of which only the number, the sum at temperature 1 and the largest
 * are known. All exponents are ≤ 0, so a smaller temperature shrinks each term by at least as much as it shrinks the largest.
 */
function restBounds(
  rest: { readonly others: number; readonly othersWeight: number; readonly largestOther: number },
  top: number,
  temperature: number,
): [least: number, most: number] {
  if (rest.others === 0) return [0, 0];
  const { othersWeight: weight } = rest;
  if (temperature === 1) return [weight, weight];
  const distance = rest.largestOther - top;
  if (temperature < 1) return [0, weight * Math.exp(distance * (1 / temperature - 1))];
  return [weight, rest.others * Math.exp(distance / temperature)];
}

/** How many of the likeliest candidates make up at least this probability; null: all of them do not. */
function nucleus(candidates: readonly Candidate[], othersWeight: number, probability: number): number | null {
  const top = maximum(candidates);
  const weights = candidates.map((candidate) => Math.exp(candidate.logit - top));
  const total = weights.reduce((a, b) => a + b, othersWeight);
  let sum = 0;
  const last = weights.findIndex((weight) => (sum += weight) >= probability * total);
  return last < 0 ? null : last + 1;
}

function adjusted(
  token: number,
  raw: number,
  sampling: Sampling,
  history: History,
  bias: ReadonlyMap<number, number>,
): number {
  let logit = raw + (bias.get(token) ?? 0);
  const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0 } = sampling;
  if (repeatPenalty !== 1 && history.recent.has(token))
    logit = logit > 0 ? logit / repeatPenalty : logit * repeatPenalty;
  const count = history.counts.get(token) ?? 0;
  return count === 0 ? logit : logit - count * frequencyPenalty - presencePenalty;
}

/** Something lifts a token that is not in the window. */
function raisesOthers(
  window: LogitWindow,
  sampling: Sampling,
  history: History,
  bias: ReadonlyMap<number, number>,
): boolean {
  const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0 } = sampling;
  const raised = new Set<number>();
  for (const [token, amount] of bias) if (amount > 0) raised.add(token);
  if (frequencyPenalty < 0 || presencePenalty < 0) for (const token of history.counts.keys()) raised.add(token);
  if (repeatPenalty < 1) for (const token of history.recent) raised.add(token);
  for (const token of window.tokens) raised.delete(token);
  return raised.size > 0;
}

function maximum(candidates: readonly Candidate[]): number {
  return candidates[0]?.logit ?? -Infinity;
}
