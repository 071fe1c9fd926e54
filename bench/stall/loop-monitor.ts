/**
 * Loaded into the server's process and the model's (`NODE_OPTIONS=--import`): watches the event loop, and on SIGUSR2 writes the worst
 * delay since the last time, in milliseconds, into a file named after the process.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const folder = process.env.TRUEWIRE_LOOP_MONITOR;
if (isMainThread && folder !== undefined) {
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  histogram.enable();
  let told = 0;
  process.on("SIGUSR2", () => {
    writeFileSync(join(folder, String(process.pid)), `${++told} ${histogram.max / 1e6}`);
    histogram.reset();
  });
}
