import { cpuMs } from "./hang.ts";

/** Prepares the work for an input of a size. Only the returned function is measured; it is called several times. */
export type Work = (size: number) => () => unknown;

/**
 * A ratio that linear work never reaches, and quadratic work always exceeds: of an input of four times the size, linear work costs 4
 * times as much (up to 10 where the garbage collector begins to work), quadratic work 16 times.
 */
export const maxGrowth = 12;

/** The work whose cost is compared lasts at least this long, in milliseconds of CPU time: far more than a clock's step. */
const minMs = 1;
/** Linear work of this size takes longer than `minMs`, or is so quick that its growth does not matter. */
const maxSize = 1 << 13;

/**
 * Returns by what factor the CPU time of `work` grows when its input becomes four times as long. Only times of this process are compared
 * with each other. One round of each size is enough where the factor is that of linear work, as it is for nearly all. A high factor is
 * measured again, the least of several rounds, and then between inputs of four and of sixteen times the length: small inputs need no garbage
 * collector, which makes linear work up to eight times slower from some size on.
 */
export function growthOf(work: Work, firstSize = 256): number {
  let size = firstSize;
  let run = work(size);
  run();
  // Of several rounds, as the first ones run before the compiler has optimized the work.
  let ms = least(run, 2);
  while (size < maxSize && ms < minMs) {
    // Making the inputs costs more than quick work does: larger steps, though not so large that quadratic work takes seconds.
    size *= ms < minMs / 4 ? 4 : 2;
    run = work(size);
    ms = least(run, 2);
  }
  const larger = least(work(size * 4), 1);
  // Again: expressions are compiled only when they have run for a while, and Node 24's were measured before that.
  ms = Math.min(ms, least(run, 2));
  let growth = larger / Math.max(ms, 0.02);
  const isHigh = (): boolean => growth >= maxGrowth * 0.7;
  if (isHigh()) growth = Math.min(growth, least(work(size * 4), 3) / Math.max(Math.min(ms, least(run, 9)), 0.02));
  for (let attempt = 0; attempt < 5 && isHigh(); attempt++)
    // The smaller input has more rounds: what disturbs all of a few short ones would hide quadratic work. The first round may pay for the
    // garbage of earlier inputs, which is all that quick work costs.
    growth = Math.min(growth, least(work(size * 16), 3) / Math.max(least(work(size * 4), 9), 0.2));
  return growth;
}

/** A run that takes this long, in milliseconds, is not repeated: what disturbs it for a moment is little of it. */
const longMs = 500;

function least(run: () => unknown, rounds: number): number {
  let ms = Infinity;
  for (let round = 0; round < rounds; round++) {
    const took = cpuMs(run);
    ms = Math.min(ms, took);
    if (took > longMs) break;
  }
  return ms;
}
