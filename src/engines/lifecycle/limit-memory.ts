import { Worker } from "node:worker_threads";
import type { Watched } from "./watch-process.ts";

/** The most resident memory of this process, in bytes; 0: no limit. The watching thread reads it. */
const maxResident = new Float64Array(new SharedArrayBuffer(8));

/**
 * Starts the thread that ends this process with its parent, and at a limit of resident memory, in bytes (0: none yet; absent: the system
 * enforces limits, or there is none).
 */
export function watchProcess(limit?: number): void {
  maxResident[0] = limit ?? 0;
  const watched: Watched = { parent: process.ppid, ...(limit !== undefined && { maxResident }) };
  new Worker(new URL("./watch-process.js", import.meta.url), { workerData: watched }).unref();
}

/** Lets this process grow by this number of bytes while `run` runs, where the system has no such limit: the watching thread ends it above. */
export function whileWatched<T>(more: number, run: () => T): T {
  const before = maxResident[0] ?? 0;
  maxResident[0] = process.memoryUsage.rss() + more;
  try {
    return run();
  } finally {
    maxResident[0] = before;
  }
}
