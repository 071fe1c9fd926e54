/** What llama-server reached when it was last measured: for those who have not built it. Other machines have other figures. */
export const recordedAt = "2026-11-22, two cores of an AMD EPYC";

/** Tokens a second and milliseconds of CPU a token, by threads, case and streams. */
const recorded: Readonly<Record<string, readonly [perSecond: number, cpuMs: number]>> = {};

/** undefined: that was not measured. */
export function recordedRate(
  threads: number,
  name: string,
  streams: number,
): { readonly perSecond: number; readonly cpuMs: number } | undefined {
  const found = recorded[`${threads} ${name} ${streams}`];
  return found && { perSecond: found[0], cpuMs: found[1] };
}
