import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/** Where Linux says how much processor time a container may use. Source: the kernel's documentation of cgroup v2, `cpu.max`. */
const quotaFile = "/sys/fs/cgroup/cpu.max";

/** Cores that this process may use: those of the machine, or of them what its container is given. */
export function usableCores(): number {
  return Math.min(availableParallelism(), coresOfQuota(readQuota()));
}

/** `quota`: microseconds of processor time and the period that they are for, `150000 100000`; `max`: there is no limit. */
export function coresOfQuota(quota: string): number {
  const [time, period] = quota.trim().split(" ").map(Number);
  if (time === undefined || period === undefined || !(time > 0) || !(period > 0)) return Infinity;
  return Math.max(1, Math.floor(time / period));
}

function readQuota(): string {
  try {
    return readFileSync(quotaFile, "utf8");
  } catch {
    // Another system, or no limit.
    return "max";
  }
}
