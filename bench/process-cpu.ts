import { readFileSync } from "node:fs";
import type { spawnSync } from "node:child_process";

/** CPU time of a process so far, in milliseconds, of all threads that it ever had, in steps of ten (Linux, `/proc/PID/stat`). */
export function processCpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name may hold anything, but ends with the last parenthesis.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** The interval at which the memory of processes is read, in milliseconds. */
const memoryInterval = 200;

/**
 * Reads the memory of a program's processes until it is stopped (Linux, `/proc/PID/smaps`). The pages of a file that several of them have
 * mapped exist once, so each file counts as much as the process has that uses it most.
 */
export class MemoryWatch {
  /** The highest sum over all processes, and that without pages of files. MiB. */
  peakMiB = 0;
  peakAnonymousMiB = 0;
  readonly #processes: readonly number[];
  readonly #timer: NodeJS.Timeout;

  constructor(processes: readonly number[]) {
    this.#processes = processes;
    this.#timer = setInterval(() => this.sample(), memoryInterval);
  }

  sample(): void {
    const files = new Map<string, number>();
    let anonymous = 0;
    for (const pid of this.#processes) {
      const own = memoryOf(pid);
      anonymous += own.anonymous;
      for (const [file, kilobytes] of own.files) files.set(file, Math.max(files.get(file) ?? 0, kilobytes));
    }
    const all = [...files.values()].reduce((sum, kilobytes) => sum + kilobytes, anonymous);
    this.peakMiB = Math.max(this.peakMiB, all / 1024);
    this.peakAnonymousMiB = Math.max(this.peakAnonymousMiB, anonymous / 1024);
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

/** The memory of a process in KiB: its own pages, and those of each file that it has mapped. */
function memoryOf(pid: number): { readonly anonymous: number; readonly files: ReadonlyMap<string, number> } {
  const files = new Map<string, number>();
  let anonymous = 0;
  let file = "";
  let resident = 0;
  for (const line of readFileSync(`/proc/${pid}/smaps`, "utf8").split("\n")) {
    const [, key = "", value = ""] = /^(Rss|Anonymous): +(\d+)/.exec(line) ?? [];
    if (key === "Rss") resident = Number(value);
    else if (key === "Anonymous") {
      anonymous += Number(value);
      if (file !== "") files.set(file, (files.get(file) ?? 0) + resident - Number(value));
    } else if (/^[0-9a-f]+-[0-9a-f]+ /.test(line))
      file = line.slice(line.indexOf("/") === -1 ? line.length : line.indexOf("/"));
  }
  return { anonymous, files };
}

/** The process that this one started. */
export function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")[0]);
}

/** CPU microseconds that a Node process spends on waking up for an empty timer: the floor for anything that happens one by one. */
export function wakeUpMicroseconds(run: typeof spawnSync): string {
  const script =
    "let n = 0, start; const t = setInterval(() => { if (++n === 100) start = process.cpuUsage(); if (n === 500) { const c = process.cpuUsage(start); console.log(Math.round((c.user + c.system) / 400)); clearInterval(t); } }, 5);";
  return String(run(process.execPath, ["-e", script]).stdout).trim();
}
