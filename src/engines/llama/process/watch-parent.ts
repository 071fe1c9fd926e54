/*
 * A worker thread that ends the model's process when its parent has ended. The main thread notices that by its channel, but not while
 * llama.cpp computes in it. `workerData` is the parent's process id.
 */
import { workerData } from "node:worker_threads";

const everyMs = 1000;
const parent = workerData as number;

setInterval(() => {
  if (process.ppid === parent && isAlive(parent)) return;
  process.kill(process.pid, "SIGKILL");
}, everyMs);

/** Needed on Windows, where `process.ppid` does not change when the parent ends. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // The process exists, but may not be signalled.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
