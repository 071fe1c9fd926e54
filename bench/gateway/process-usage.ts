import { readdirSync, readFileSync } from "node:fs";

/** CPU time of all threads of a process so far, in microseconds. Linux only. */
function cpuMicroseconds(pid: number): number {
  let nanoseconds = 0;
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1000;
}

/** The memory that a process has in use, in MiB. Linux only. */
export function residentMib(pid: number): number {
  const kib = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}

/** The sum of the memory peaks of a process and its children, in MiB. Linux only. */
export function peakMibOfAll(pid: number): number {
  const peak = (one: number): number =>
    Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${one}/status`, "utf8"))?.[1]) / 1024;
  return withChildren(pid).reduce((sum, one) => sum + peak(one), 0);
}

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** A process, and all that it and its children have started. Linux only. */
export function withChildren(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return [pid, ...(children === "" ? [] : children.split(" ").map(Number)).flatMap(withChildren)];
}

/** CPU time of a process so far and of those that it has started, in microseconds. Linux only. */
export function cpuOfAll(pid: number): number {
  return withChildren(pid).reduce((sum, one) => sum + cpuMicroseconds(one), 0);
}
