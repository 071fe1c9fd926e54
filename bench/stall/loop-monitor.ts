/**
 * Loaded into the server's process and the model's (`NODE_OPTIONS=--import`): watches the event loop, and on SIGUSR2 writes a report into a file
 * named after the process: its number, the worst delay since the previous report (ms), the bytes of the heap in use, the longest work
 * (ms) and the bytes outside the heap (buffers). Collects the garbage first if a file of that name with `.collect` exists.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";

const folder = process.env.TRUEWIRE_LOOP_MONITOR;
if (isMainThread && folder !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  let reports = 0;
  let work = 0;
  let before = ownTime();
  setInterval(() => {
    const now = ownTime();
    work = Math.max(work, now - before);
    before = now;
  }, 1).unref();
  const file = join(folder, String(process.pid));
  process.on("SIGUSR2", () => {
    if (existsSync(`${file}.collect`)) collect();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(file, `${++reports} ${histogram.max / 1e6} ${heapUsed} ${work} ${external}`);
    histogram.reset();
    work = 0;
  });
}

/** The processor time of this thread, in milliseconds: that of the others, which collect garbage and compile, delays no request. */
function ownTime(): number {
  const [nanoseconds] = readFileSync("/proc/self/schedstat", "utf8").split(" ");
  return Number(nanoseconds) / 1e6;
}

function collect(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}
