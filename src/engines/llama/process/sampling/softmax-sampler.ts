import { greedy, type LogitSampler } from "./logits.ts";
import { minDifference } from "./sum-of-exp.ts";

/** Logits per partial sum. The sampled position is found by the partial sums first. */
const blockSize = 256;
/** Rejected tokens after which the exact weights are used. At temperature 1 a few in a hundred are rejected. */
const maxRejections = 30;
/** Far above the smallest number, near which a weight has few digits. */
const minTotal = 1e-280;

/**
 * Returns a function that samples an index of logits by softmax at a temperature above 0. `random`: uniform in [0, 1).
 *
 * The weight of a logit is looked up by its upper 16 bits and is the largest one that a logit with these bits can have. What it samples is
 * accepted with the probability that is its exact share of that weight, so the distribution is exact. One pass over 49,152 logits takes
 * 0.04 ms; to search the largest logit first, and then to add up the exponentials, takes 0.14.
 */
export function sampleSoftmax(temperature: number, random: () => number): LogitSampler {
  const scale = 1 / temperature;
  const weights = weightsAt(temperature);
  let sums = new Float64Array();
  return (logits, likeliest) => {
    const upperHalves = new Uint16Array(logits.buffer, logits.byteOffset, logits.length * 2);
    const blocks = Math.ceil(logits.length / blockSize);
    if (sums.length < blocks) sums = new Float64Array(blocks);
    let total = 0;
    for (let block = 0; block < blocks; block++)
      total += sums[block] = sumOfWeights(weights, upperHalves, block * blockSize, (block + 1) * blockSize);
    // The table is not relative to the largest logit: at low temperatures weights may be infinite, or all of them 0.
    if (total > minTotal && total < Infinity)
      for (let rejections = 0; rejections < maxRejections; rejections++) {
        let left = random() * total;
        let block = 0;
        while (block < blocks - 1 && left >= (sums[block] ?? 0)) left -= sums[block++] ?? 0;
        for (let at = block * blockSize; at < logits.length; at++) {
          const weight = weights[upperHalves[2 * at + 1] ?? 0] ?? 0;
          left -= weight;
          if (left >= 0) continue;
          if (random() * weight < Math.exp((logits[at] ?? 0) * scale)) return at;
          break;
        }
      }
    return sampleExactly(logits, scale, random, likeliest);
  };
}

/** Adds up the weights of the logits from `from` up to, but not including, `to`. */
function sumOfWeights(weights: Float64Array, upperHalves: Uint16Array, from: number, to: number): number {
  // The processor adds up four sums at a time.
  let [first, second, third, fourth] = [0, 0, 0, 0];
  const end = Math.min(upperHalves.length, 2 * to);
  const whole = end - (end % 8);
  for (let at = 2 * from + 1; at < whole; at += 8) {
    first += weights[upperHalves[at] ?? 0] ?? 0;
    second += weights[upperHalves[at + 2] ?? 0] ?? 0;
    third += weights[upperHalves[at + 4] ?? 0] ?? 0;
    fourth += weights[upperHalves[at + 6] ?? 0] ?? 0;
  }
  for (let at = whole + 1; at < end; at += 2) first += weights[upperHalves[at] ?? 0] ?? 0;
  return first + second + third + fourth;
}

/** Samples with the exact weights, relative to the largest logit. */
function sampleExactly(logits: Float32Array, scale: number, random: () => number, likeliest?: number): number {
  const best = greedy(logits, likeliest);
  const largest = logits[best] ?? 0;
  const weightOf = (at: number): number => {
    const exponent = ((logits[at] ?? 0) - largest) * scale;
    return exponent > minDifference ? Math.exp(exponent) : 0;
  };
  let total = 0;
  for (let at = 0; at < logits.length; at++) total += weightOf(at);
  let left = random() * total;
  for (let at = 0; at < logits.length; at++) if ((left -= weightOf(at)) < 0) return at;
  // Rounding has left a rest, or all tokens are banned.
  return best;
}

/** The last tables that were made, by temperature: half a megabyte each. */
const tables = new Map<number, Float64Array>();
const maxTables = 8;

/** exp(logit / temperature) of the largest logit with the same upper 16 bits, by these bits; 0 for what is not a number. */
function weightsAt(temperature: number): Float64Array {
  const known = tables.get(temperature);
  if (known) return known;
  const halves = new Uint16Array(2);
  const number = new Float32Array(halves.buffer);
  const weights = Float64Array.from({ length: 0x1_0000 }, (_, upperHalf) => {
    halves[1] = upperHalf;
    // The lower half makes a positive number larger and a negative one smaller; that of infinity is 0.
    halves[0] = upperHalf < 0x7f80 ? 0xffff : 0;
    const logit = number[0] ?? 0;
    return Number.isNaN(logit) ? 0 : Math.exp(logit / temperature);
  });
  for (const oldest of tables.keys()) if (tables.size >= maxTables) tables.delete(oldest);
  tables.set(temperature, weights);
  return weights;
}
