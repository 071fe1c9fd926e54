import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { Processes } from "../server/service.ts";

/**
 * Names this process so that another one on the same machine can find out whether it has ended. On Linux the name has the kernel's boot id, the
 * namespace of process ids, the process id and the time at which the process started, so that it is confused neither with a process of
 * another container nor with a later process of the same id. Elsewhere: the host's name and the process id. Source: proc(5), /proc/PID/stat.
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
