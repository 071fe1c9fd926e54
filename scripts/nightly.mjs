// npm run nightly [-- --only WORD]
//
// Runs the tests that look for rare mistakes with random inputs, each with many more than `npm test` tries (`TRUEWIRE_RUNS`,
// test/support/runs.ts), the mutations of the checker, all attacks, and the fuzz targets. Prints one line for each with its seconds, and what it
// said if it failed; the exit code is 1 if one did. `--only` runs those whose name contains the word. They run one after the other, at night or
// before a release: about three hours on two cores. Needs a build.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
const npx = process.platform === "win32" ? "npx.cmd" : "npx";
const vitest = (files, variables) => ({ command: [npx, "vitest", "run", ...files], variables });
const npm = (...args) => ({ command: [npx.replace("npx", "npm"), "run", "--silent", ...args], variables: {} });

/** Those with a number of their own: how many times as often as with all other tests. */
const numbers = {
  "test/engine/damaged-files.test.ts": 100,
  "src/engines/llama/file/damaged-headers.test.ts": 200,
  "test/engine/killed-under-load.test.ts": 10,
  "test/engine/native-memory.test.ts": 17,
  "test/engine/grammar-bombs.test.ts": 250,
  "test/check/mutation.test.ts": 25,
  "test/upstream/repair-check.test.ts": 25,
  "test/engine/scheduling-random.test.ts": 12,
};
const others = ["src", "test"]
  .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => `${folder}/${name}`))
  .filter((file) => file.endsWith(".test.ts") && !Object.hasOwn(numbers, file))
  .filter((file) => readFileSync(file, "utf8").includes("support/runs.ts"));

const runs = {
  ...Object.fromEntries(
    Object.entries(numbers).map(([file, number]) => [file, vitest([file], { TRUEWIRE_RUNS: String(number) })]),
  ),
  "all other random tests": vitest(others, { TRUEWIRE_RUNS: "20" }),
  page: vitest(["test/page"], { TRUEWIRE_PAGE_SIZE: "5", TRUEWIRE_RUNS: "2" }),
  mutations: npm("mutate"),
  attacks: npm("bench", "attack", "--", "--all"),
  // What the gateway costs, to be compared with that of another night.
  gateway: npm("bench", "gateway", "--", "--quick"),
  ...Object.fromEntries(
    ["json", "sse", "template", "grammar", "gguf", "multipart", "image", "zstd"].map((name) => [
      `fuzz ${name}`,
      npm("fuzz", "--", name, "--minutes", "5"),
    ]),
  ),
};

for (const [name, { command, variables }] of Object.entries(runs)) {
  if (!name.includes(values.only)) continue;
  const begun = performance.now();
  const [program, ...args] = command;
  const env = { ...process.env, NO_COLOR: "1", ...variables };
  const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: "utf8", maxBuffer: 2 ** 28 });
  console.log(`${status === 0 ? "ok    " : "FAILED"}  ${name} (${Math.round((performance.now() - begun) / 1000)} s)`);
  if (status === 0) continue;
  process.exitCode = 1;
  console.log(`${stdout}\n${stderr}`.trimEnd().split("\n").slice(-80).join("\n"));
}
