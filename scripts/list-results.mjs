// node scripts/list-results.mjs REPORT [TIMES]
//
// Prints which tests take the time (the seconds of each folder, as `src/wire/apis` or `test/page`, then the 30 slowest files), and what failed, with
// its error. REPORT is the report of Vitest's json reporter. Files run at the same time, so that the sum is more than a run takes. TIMES has the
// CPU time of each file, by test/support/cpu-of-files.ts; where it exists, these times are printed.
import { existsSync, readFileSync } from "node:fs";
import { relative } from "node:path";

const { testResults } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const times = process.argv[3] ?? "";
const isCpu = existsSync(times);
/** A file that was run again has two lines. */
const files = isCpu
  ? readFileSync(times, "utf8")
      .trim()
      .split("\n")
      .map((line) => [line.slice(line.indexOf(" ") + 1), Number.parseFloat(line)])
  : testResults.map(({ name, startTime, endTime }) => [relative("", name), (endTime - startTime) / 1000]);

/** The largest first, as lines. */
const lines = (times) =>
  times.toSorted(([, a], [, b]) => b - a).map(([name, seconds]) => `${seconds.toFixed(1).padStart(8)} s  ${name}`);

const folders = new Map();
for (const [file, seconds] of files) {
  const folder = file.split("/").slice(0, 2).join("/");
  folders.set(folder, (folders.get(folder) ?? 0) + seconds);
}
console.log(`${isCpu ? "CPU time" : "time"} of tests by folder:\n${lines([...folders]).join("\n")}`);
console.log(`the slowest 30 of ${files.length} files:\n${lines(files).slice(0, 30).join("\n")}`);

for (const { name, message, status, assertionResults } of testResults) {
  const failed = assertionResults.filter((test) => test.status === "failed");
  const errors = failed.map(({ fullName, failureMessages }) => [` > ${fullName}`, failureMessages.join("\n")]);
  if (status === "failed" && failed.length === 0) errors.push(["", message]);
  for (const [test, error] of errors) {
    console.log(`failed  ${relative("", name)}${test}\n        ${error.slice(0, 3000).replaceAll("\n", "\n        ")}`);
  }
}
