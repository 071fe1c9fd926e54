import { appendFileSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { afterAll, expect } from "vitest";

/** The CPU time of this process and of the processes that it has waited for, in seconds (Linux: proc(5), in ticks of 10 ms). */
function cpuSeconds(): number {
  const stat = readFileSync("/proc/self/stat", "latin1");
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return fields.slice(11, 15).reduce((sum, ticks) => sum + ticks, 0) / 100;
}

/*
 * Runs before each file of tests where TRUEWIRE_CPU_TIMES names a file, and appends the CPU time of the tests to it. How long a file took says
 * little: others run at the same time. Processes that live on, as a browser, are not counted.
 */
const before = cpuSeconds();
afterAll(() => {
  const path = relative("", expect.getState().testPath ?? "");
  appendFileSync(process.env["TRUEWIRE_CPU_TIMES"] ?? "", `${(cpuSeconds() - before).toFixed(2)} ${path}\n`);
});
