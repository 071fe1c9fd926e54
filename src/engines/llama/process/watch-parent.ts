/**
 * A thread that ends the model's process when its parent is gone. The main thread learns that from its channel, but not while llama.cpp
 * computes in it. `main.ts` starts it as a worker; `workerData` is the parent's process id.
 */
import { workerData } from "node:worker_threads";

const everyMs = 1000;
const parent = workerData as number;

setInterval(() => {
  if (process.ppid === parent && isAlive(parent)) return;
  process.kill(process.pid, "SIGKILL");
}, everyMs);

/** Needed on Windows, where `process.ppid` does not change when the parent is gone. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It exists; we may not send it signals.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
