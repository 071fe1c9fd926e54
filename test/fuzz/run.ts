import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { CoverageFuzzer } from "./coverage-fuzzer.ts";
import { targets } from "./targets.ts";

// Fuzzes a reader of strangers' bytes, guided by which blocks of its code an input reaches:
//
//   npm run fuzz -- json [--minutes 60] [--seed 1]
//
// The minutes are CPU time, so that a run tries as much on a busy machine.
// Inputs that reach new code are kept in .cache/fuzz/NAME, and are the start of the next run. What fails is written to .cache/fuzz/NAME/failed-…,
// and ends the run with exit code 1, and so does an input that takes more than a second of CPU time. `current` is the input that is being read, in
// case it never ends.

/** CPU time, in milliseconds. No reader needs this long for the 4 KiB that an input has at most. */
const maxInputMs = 1000;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: "string", default: "60" }, seed: { type: "string", default: "1" } },
});
const [name = ""] = positionals;
const target = Object.hasOwn(targets, name) ? targets[name] : undefined;
if (!target) {
  console.error(`usage: npm run fuzz -- ${Object.keys(targets).join("|")} [--minutes 60] [--seed 1]`);
  process.exit(2);
}

const folder = join(".cache/fuzz", name);
mkdirSync(folder, { recursive: true });
const hashOf = (input: Uint8Array): string => createHash("sha256").update(input).digest("hex").slice(0, 16);
const kept = readdirSync(folder)
  .filter((file) => file.startsWith("corpus-"))
  .map((file) => readFileSync(join(folder, file)));
const current = join(folder, "current");
const fuzzer = new CoverageFuzzer(target, { seed: Number(values.seed), corpus: kept });
const cpuMinutes = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 60e6;
};
let reported = performance.now();
while (cpuMinutes() < Number(values.minutes)) {
  const input = fuzzer.next();
  writeFileSync(current, input);
  const begun = process.cpuUsage();
  let failure: unknown;
  let isNew = false;
  try {
    isNew = fuzzer.run(input);
  } catch (error) {
    failure = error;
  }
  const { user, system } = process.cpuUsage(begun);
  const took = (user + system) / 1000;
  if (took > maxInputMs) failure ??= new Error(`it took ${took.toFixed(0)} ms of CPU time`);
  if (failure !== undefined) {
    const file = join(folder, `failed-${hashOf(input)}`);
    writeFileSync(file, input);
    console.error(`${name}: ${file} fails after ${fuzzer.runs} inputs:`, failure);
    process.exit(1);
  }
  if (isNew) writeFileSync(join(folder, `corpus-${hashOf(input)}`), input);
  if (performance.now() - reported > 30_000) {
    reported = performance.now();
    console.log(`${name}: ${fuzzer.summary}`);
  }
}
console.log(`${name}: ${fuzzer.summary}, nothing failed`);
