/** Further below the largest logit than this, exp() adds less than a sum's own rounding. */
export const negligible = -40;
const steps = 256;
const stepsPerNat = steps * Math.LOG2E;
/** exp(−i / stepsPerNat): the exponent in steps of 2^(1/256). */
const powers = Float64Array.from({ length: Math.ceil(-negligible * stepsPerNat) + 2 }, (_, i) =>
  Math.exp(-i / stepsPerNat),
);

/** exp() of a number between `negligible` and 0, to nine digits; a table makes it three times as fast as Math.exp. */
export function expOf(distance: number): number {
  const step = (0.5 - distance * stepsPerNat) | 0;
  // What is left is at most half a step, where three terms of the series are enough.
  const rest = distance + step / stepsPerNat;
  return (powers[step] ?? 0) * (1 + rest * (1 + rest * (0.5 + rest / 6)));
}
