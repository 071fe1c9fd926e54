import type { Config } from "../config/schema.ts";
import { wantsInspector } from "./settings-of-config.ts";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/**
 * Returns the number of processes that serve a configuration: the configured number. By default one for local models and programs, which
 * have their own process or threads, and where requests are inspected, which needs one process; a gateway uses all cores.
 */
export function workerCount(config: Config, cores: number = usableCores()): number {
  const { workers, models } = config;
  if (workers !== undefined) return workers;
  return models.every(({ kind }) => kind === "upstream") && !wantsInspector(config) ? cores : 1;
}

/** Contains the limit of processor time of a container on Linux. Source: the kernel's documentation of cgroup v2, `cpu.max`. */
const quotaFile = "/sys/fs/cgroup/cpu.max";

/** Number of cores that this process may use: those of the machine, limited by its container. */
export function usableCores(): number {
  return Math.min(availableParallelism(), coresOfQuota(readQuota()));
}

/** Returns the cores of a quota: microseconds of processor time and their period (`150000 100000`), or `max` for no limit. */
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

/** Ignores errors of stdout and stderr, so that the process survives when the reader of a pipe ends. */
export function outliveReaders(): void {
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}

/** Logs unhandled rejections of a user's program, which would otherwise end the process and the streams of other requests. */
export function reportRejections(): void {
  process.on("unhandledRejection", (reason) => {
    console.error(`truewire: Unhandled promise rejection: ${reason instanceof Error ? reason.stack : String(reason)}`);
  });
}
