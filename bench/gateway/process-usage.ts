import { readdirSync, readFileSync } from "node:fs";

/** CPU time of all threads of a process so far, in microseconds. Linux only. */
export function cpuMicroseconds(pid: number): number {
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

export function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** The processes that a process has started. Linux only. */
function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? [] : children.split(" ").map(Number);
}

/** CPU time of a process so far and of those that it has started, in microseconds. Linux only. */
export function cpuOfAll(pid: number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, one) => sum + cpuMicroseconds(one), 0);
}
