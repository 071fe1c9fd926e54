/*
 * A worker thread that ends its process when the parent process has ended, or when the process has more memory than it may have. The main
 * thread notices the end of its parent by its channel, but not while it computes.
 */
import { workerData } from "node:worker_threads";

/** `workerData` of the thread. */
export interface Watched {
  /** The process id of the parent. */
  readonly parent: number;
  /** The most resident memory, in bytes, in shared memory: it may change. 0 and absent: there is no limit. */
  readonly maxResident?: Float64Array;
}

const parentEveryMs = 1000;
const memoryEveryMs = 20;
const { parent, maxResident } = workerData as Watched;

setInterval(() => {
  if (process.ppid === parent && isAlive(parent)) return;
  process.kill(process.pid, "SIGKILL");
}, parentEveryMs);

if (maxResident !== undefined)
  setInterval(() => {
    const [most = 0] = maxResident;
    if (most > 0 && process.memoryUsage.rss() > most) process.kill(process.pid, "SIGKILL");
  }, memoryEveryMs);

/** Needed on Windows, where `process.ppid` does not change when the parent ends. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists, but may not be signalled.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
