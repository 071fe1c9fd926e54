import { readFileSync } from "node:fs";
import type { spawnSync } from "node:child_process";

/** CPU time of a process so far, in milliseconds, of all threads that it ever had, in steps of ten (Linux, `/proc/PID/stat`). */
export function processCpuMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name may hold anything, but ends with the last parenthesis.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
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
