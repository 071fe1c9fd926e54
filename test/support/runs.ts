/** By how much more often than with all other tests a random test tries: `npm run nightly` says 20. */
const factor = Number(process.env["TRUEWIRE_RUNS"] ?? 1);

/**
 * How often a property that costs seconds is tried (fast-check's options): `normal` times with a fixed seed, so that the tests of a commit are
 * the same each time; TRUEWIRE_RUNS times as often with other inputs each time.
 */
export function runs(normal: number): { readonly numRuns: number; readonly seed?: number } {
  return factor === 1 ? { numRuns: normal, seed: 47 } : { numRuns: Math.ceil(normal * factor) };
}
