/** What llama-server reached when it was last measured: for those who have not built it. Other machines have other figures. */
export const recordedAt = "2026-11-22, two cores of an AMD EPYC";

/** Tokens a second and milliseconds of CPU a token, by threads, case and streams. */
const recorded: Readonly<Record<string, readonly [perSecond: number, cpuMs: number]>> = {
  "1 decode 1": [103.3, 9.79],
  "1 decode 4": [78.33, 12.76],
  "1 decode 8": [81.96, 12.21],
  "1 decode 16": [167.39, 6.02],
  "1 prompt of 1000 1": [371.22, 2.68],
  "1 prompts of 500 4": [453.45, 2.21],
  "1 temperature 1 1": [97.65, 10.42],
  "1 logprobs 5 1": [88.51, 11.46],
  "1 ignore_eos, bias 1": [100.53, 10.0],
  "1 JSON schema 1": [94.05, 10.83],
  "1 required call 1": [96.18, 10.42],
  "1 temperature 1 8": [79.38, 12.6],
  "1 logprobs 5 8": [113.87, 8.88],
  "1 ignore_eos, bias 8": [81.35, 12.32],
  "1 JSON schema 8": [86.28, 11.85],
  "1 required call 8": [77.5, 12.99],
  "2 decode 1": [112.75, 16.88],
  "2 decode 4": [138.79, 13.91],
  "2 decode 8": [151.23, 12.86],
  "2 decode 16": [326.6, 5.98],
  "2 prompt of 1000 1": [766.29, 2.55],
  "2 prompts of 500 4": [819.37, 2.4],
  "2 temperature 1 1": [108.82, 17.5],
  "2 logprobs 5 1": [109.95, 17.71],
  "2 ignore_eos, bias 1": [115.37, 16.88],
  "2 JSON schema 1": [85.61, 22.5],
  "2 required call 1": [84.76, 22.5],
  "2 temperature 1 8": [138.8, 14.22],
  "2 logprobs 5 8": [181.55, 10.73],
  "2 ignore_eos, bias 8": [125.82, 15.68],
  "2 JSON schema 8": [97.02, 15.34],
  "2 required call 8": [125.71, 15.65],
};

/** undefined: that was not measured. */
export function recordedRate(
  threads: number,
  name: string,
  streams: number,
): { readonly perSecond: number; readonly cpuMs: number } | undefined {
  const found = recorded[`${threads} ${name} ${streams}`];
  return found && { perSecond: found[0], cpuMs: found[1] };
}
