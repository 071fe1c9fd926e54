import { readFileSync, readlinkSync } from "node:fs";
import { availableParallelism, hostname } from "node:os";
import type { Processes } from "../server/service.ts";

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

/**
 * Names this process so that another one on the same machine can find out whether it has ended. On Linux the name has the kernel's boot
 * id, the namespace of process ids, the process id and the time at which the process started, so that it is confused neither with a
 * process of another container nor with a later process of the same id. Elsewhere: the host's name and the process id. Source: proc(5),
 * /proc/PID/stat.
 */
export function openProcesses(): Processes {
  const place = placeOfProcess();
  return {
    own: [place, process.pid, startOf(process.pid) ?? ""].join(" "),
    hasEnded(name) {
      const [where, pid, start] = name.split(" ");
      if (where !== place || !Number.isSafeInteger(Number(pid))) return false;
      if (process.platform === "linux") return startOf(Number(pid)) !== start;
      return !isAlive(Number(pid));
    },
  };
}

function placeOfProcess(): string {
  if (process.platform !== "linux") return encodeURIComponent(hostname());
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()}/${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    // No process is on the same machine as one that does not know where it is.
    return crypto.randomUUID();
  }
}

/** The start time of a process, in clock ticks since boot. undefined: it has ended, even if its parent has not collected it yet. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name of the program, in parentheses, may have spaces and parentheses itself.
    const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return state === "Z" || state === "X" ? undefined : fields[18];
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

/** The limit of open files of this process; undefined if it is unlimited or cannot be determined. */
export function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"));
    return soft ? Number(soft[1]) : undefined;
  } catch {
    return reportedDescriptorLimit();
  }
}

/** Node's diagnostic report has the limit on all systems except Windows, but is slow. */
function reportedDescriptorLimit(): number | undefined {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft?: unknown } } };
  const soft = report.userLimits?.open_files?.soft;
  return typeof soft === "number" ? soft : undefined;
}
