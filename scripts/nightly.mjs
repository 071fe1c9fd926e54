// npm run nightly [-- --only WORD]
//
// Runs the tests that look for rare mistakes with random inputs, each with many more than `npm test` tries, the mutations of the checker, all
// attacks, and the fuzz targets. Prints one line for each with its seconds, and what it said if it failed; the exit code is 1 if one did. `--only` runs those whose name
// contains the word. They run one after the other, at night or before a release: about two hours and a half on two cores. Needs a build.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });
const npx = process.platform === "win32" ? "npx.cmd" : "npx";
const vitest = (file, variables) => ({ command: [npx, "vitest", "run", file], variables });
const npm = (...args) => ({ command: [npx.replace("npx", "npm"), "run", "--silent", ...args], variables: {} });

const runs = {
  "damaged model files": vitest("test/engine/damaged-files.test.ts", { TRUEWIRE_DAMAGED: "1000" }),
  "damaged headers": vitest("src/engines/llama/file/damaged-headers.test.ts", { TRUEWIRE_DAMAGED_HEADERS: "100000" }),
  "kills under load": vitest("test/engine/killed-under-load.test.ts", { TRUEWIRE_KILLS: "50" }),
  "native memory": vitest("test/engine/native-memory.test.ts", { TRUEWIRE_REQUESTS: "10000" }),
  grammars: vitest("test/engine/grammar-bombs.test.ts", { TRUEWIRE_GRAMMARS: "10000" }),
  exchanges: vitest("test/check/mutation.test.ts", { TRUEWIRE_EXCHANGES: "2000" }),
  repairs: vitest("test/upstream/repair-check.test.ts", { TRUEWIRE_REPAIRS: "200" }),
  page: vitest("test/page", { TRUEWIRE_PAGE_SIZE: "5" }),
  schedules: vitest("test/engine/scheduling-random.test.ts", { TRUEWIRE_SCHEDULES: "300" }),
  mutations: npm("mutate"),
  attacks: npm("bench", "attack", "--", "--all"),
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
