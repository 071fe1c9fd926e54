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
  const outside = window.others > 0 ? changedOutside(window, sampling, history, bias) : { raises: false, lowered: 0 };
  if (outside.raises) return null;
  const largestOther = window.others > 0 ? (window.logits.at(-1) ?? -Infinity) : -Infinity;
  let candidates = window.tokens
    .map((token, i) => ({ token, logit: adjusted(token, window.logits[i] ?? -Infinity, sampling, history, bias) }))
    .filter((candidate) => candidate.logit > -Infinity);
  // Adjustments may have changed the order.
  candidates.sort((a, b) => b.logit - a.logit);
  /** Candidates from here on may have been overtaken by tokens outside the window. */
  let certain = candidates.findIndex((candidate) => candidate.logit < largestOther);
  if (certain < 0) certain = candidates.length;
  let rest = restOf(window, outside.lowered, maximum(candidates));
  const cut = (size: number): void => {
    candidates = candidates.slice(0, Math.max(1, size));
    rest = none;
  };

  const temperature = sampling.temperature ?? 1;
  if (temperature > 0) {
    const topK = sampling.topK ?? 0;
    if (topK > 0 && topK < candidates.length + rest.count) {
      if (rest.count > 0 && topK > certain) return null;
      cut(topK);
    }
    const topP = sampling.topP ?? 1;
    if (topP < 1) {
      const size = nucleus(candidates, rest.most, topP);
      if (rest.count > 0 && (size === null || size > certain || size !== nucleus(candidates, rest.least, topP)))
        return null;
      if (size !== null) cut(size);
    }
    const minP = sampling.minP ?? 0;
    if (minP > 0) {
      const least = maximum(candidates) + Math.log(minP);
      if (rest.count > 0 && largestOther >= least) return null;
      cut(candidates.filter((candidate) => candidate.logit >= least).length);
    }
  }
  const { xtc } = sampling;
  if (xtc && xtc.probability > 0 && xtc.threshold <= 0.5 && chance < xtc.probability) {
    const top = maximum(candidates);
    const weights = candidates.map((candidate) => Math.exp(candidate.logit - top));
    const sum = weights.reduce((a, b) => a + b, 0);
    const above = (total: number): number => weights.filter((weight) => weight / total >= xtc.threshold).length;
    const size = above(sum + rest.least);
    if (rest.count > 0) {
      if (Math.exp(largestOther - top) / (sum + rest.least) >= xtc.threshold) return null;
      if (size !== above(sum + rest.most)) return null;
    }
    if (size > 1) {
      const scale = Math.exp(top - (candidates[size - 1]?.logit ?? top));
      rest = { ...rest, least: rest.least * scale, most: rest.most * scale };
      candidates = candidates.slice(size - 1);
      certain -= size - 1;
    }
  }
  if (temperature <= 0) return rest.count > 0 && certain < 1 ? null : (candidates[0]?.token ?? null);
  return drawWith(candidates, certain, rest, temperature, draw);
}

/** What is known of the tokens outside the window; weights are exp(logit − the best candidate's logit). */
interface Rest {
  readonly count: number;
  /** Bounds for the sum of their weights. */
  readonly least: number;
  readonly most: number;
  readonly largestOther: number;
}

const none: Rest = { count: 0, least: 0, most: 0, largestOther: -Infinity };

/**
 * Sums of the same weights in another order differ by rounding, and a decision that hangs on it must be left to the whole vocabulary.
 * Far more than a sum of a million weights can be off by.
 */
const rounding = 1e-9;

/** A bias or a penalty may have lowered some of the others by an unknown weight, though none weighed more than the window's last. */
function restOf(window: LogitWindow, lowered: number, top: number): Rest {
  if (window.others === 0) return none;
  const scale = Math.exp((window.logits[0] ?? 0) - top);
  const largestOther = window.logits.at(-1) ?? -Infinity;
  const most = window.othersWeight * scale;
  const least = Math.max(0, most - lowered * Math.exp(largestOther - top));
  // The sums with the candidates are of the order of 1 and more.
  return {
    count: window.others,
    least: least - rounding * (1 + least),
    most: most + rounding * (1 + most),
    largestOther,
  };
}

/**
 * Draws in proportion to exp(logit / temperature). Without all tokens the sum is known within bounds: decided if both agree, and on one of
 * the first `certain` candidates, before which no token from outside the window can belong.
 */
function drawWith(
  candidates: readonly Candidate[],
  certain: number,
  rest: Rest,
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
  // Rounding may leave nothing: then it is the last one.
  if (rest.count === 0) return candidates.at(index)?.token ?? null;
  return index < 0 || index >= certain || at(sum + most) !== index ? null : (candidates[index]?.token ?? null);
}

/**
 * Bounds for the sum of exp((logit − top) / temperature) over tokens of which only the number, the largest, and bounds of the sum at
 * temperature 1 are known. All exponents are ≤ 0, so a smaller temperature shrinks each term by at least as much as it shrinks the
 * largest.
 */
function restBounds(rest: Rest, top: number, temperature: number): [least: number, most: number] {
  if (rest.count === 0 || temperature === 1) return [rest.least, rest.most];
  const distance = rest.largestOther - top;
  if (temperature < 1) return [-rounding, rest.most * Math.exp(distance * (1 / temperature - 1)) + rounding];
  return [rest.least, rest.count * Math.exp(distance / temperature) + rounding];
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

/** Whether something lifts a token that is not in the window, and how many such tokens are lowered or banned. */
function changedOutside(
  window: LogitWindow,
  sampling: Sampling,
  history: History,
  bias: ReadonlyMap<number, number>,
): { readonly raises: boolean; readonly lowered: number } {
  const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0 } = sampling;
  const raised = new Set<number>();
  const lowered = new Set<number>();
  for (const [token, amount] of bias) (amount > 0 ? raised : lowered).add(token);
  for (const token of history.counts.keys()) {
    if (frequencyPenalty < 0 || presencePenalty < 0) raised.add(token);
    if (frequencyPenalty > 0 || presencePenalty > 0) lowered.add(token);
  }
  if (repeatPenalty !== 1) for (const token of history.recent) (repeatPenalty < 1 ? raised : lowered).add(token);
  for (const token of window.tokens) {
    raised.delete(token);
    lowered.delete(token);
  }
  return { raises: raised.size > 0, lowered: lowered.size };
}

function maximum(candidates: readonly Candidate[]): number {
  return candidates[0]?.logit ?? -Infinity;
}
