// node scripts/list-skips.mjs REPORT LOG
//
// Prints the tests that were skipped, by file and suite, with the reason. REPORT is the report of Vitest's json reporter; LOG is what its
// default reporter printed, without colors: a test file that skips something prints a line "skipped: REASON". Exits with code 1 if a file
// with skipped tests gives no reason.
import { readFileSync } from "node:fs";
import { relative } from "node:path";

const [report, log] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const { testResults } = JSON.parse(report);

/** Reasons by file: Vitest puts a line "stdout | FILE" before the output of a file. */
const reasons = new Map();
let file = "";
for (const line of log.split("\n")) {
  file = /^stdout \| (\S+)/.exec(line)?.[1] ?? file;
  const [, reason] = /^skipped: (.*)/.exec(line) ?? [];
  if (reason === undefined) continue;
  if (!reasons.has(file)) reasons.set(file, new Set());
  reasons.get(file).add(reason);
}

/** By file: its skipped tests, as suites where a whole suite is skipped. */
const skipped = new Map();
for (const { name, assertionResults } of testResults) {
  const suites = new Map();
  for (const { ancestorTitles, title, status } of assertionResults) {
    const suite = ancestorTitles[0] ?? "";
    if (!suites.has(suite)) suites.set(suite, { skipped: [], others: 0 });
    const tests = suites.get(suite);
    if (["passed", "failed"].includes(status)) tests.others++;
    else tests.skipped.push([...ancestorTitles, title].join(" > "));
  }
  const names = [...suites].flatMap(([suite, tests]) =>
    suite !== "" && tests.others === 0 ? [`${suite} (all tests: ${tests.skipped.length})`] : tests.skipped,
  );
  if (names.length > 0) skipped.set(relative("", name), names);
}

for (const [path, names] of [...skipped].toSorted()) {
  const why = [...(reasons.get(path) ?? [])];
  if (why.length === 0) process.exitCode = 1;
  console.log(`skipped ${path}`);
  for (const one of names) console.log(`          ${one}`);
  for (const reason of why.length > 0 ? why : ["NO REASON GIVEN"]) console.log(`        because: ${reason}`);
}
