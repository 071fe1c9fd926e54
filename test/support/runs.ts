/** By how much more often than with all other tests random tests try: a number in `npm run nightly`. */
const factor = Number(process.env["TRUEWIRE_RUNS"] ?? 1);

/** Whether random tests try other inputs each time, and say what they saw. */
export const isNightly: boolean = factor !== 1;

/** How often a test that costs seconds tries: `normal` times with all other tests. */
export function times(normal: number): number {
  return Math.ceil(normal * factor);
}

/**
 * Of cases that differ little, one of `share` with all other tests, at least one in any case, and all of them at night. `first` is which one:
 * tests with the same list begin at different places, so that together they try each case.
 */
export function dailyPart<Case>(cases: readonly Case[], share: number, first = 0): Case[] {
  const step = Math.min(share, cases.length);
  return isNightly ? [...cases] : cases.filter((_, at) => (at + first) % step === 0);
}

/** The same as options of fast-check. With all other tests the seed is fixed: the tests of a commit are the same each time. */
export function runs(normal: number): { readonly numRuns: number; readonly seed?: number } {
  return { numRuns: times(normal), ...(!isNightly && { seed: 47 }) };
}
