/**
 * A thread of the model's process that ends the process when its parent is gone. The main thread hears of that by its channel, but not
 * while llama.cpp computes in it. Imported by `main.ts` as a worker; `workerData` is the parent's process id.
 */
import { workerData } from "node:worker_threads";

const everyMs = 1000;
const parent = workerData as number;

setInterval(() => {
  if (process.ppid === parent && isAlive(parent)) return;
  process.kill(process.pid, "SIGKILL");
}, everyMs);

/** On Windows a process keeps its parent's number when that is gone. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Not allowed to send it a signal: it is there.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
