import { readdirSync } from "node:fs";
import { defineConfig } from "vitest/config";
import type { TestProjectInlineConfiguration } from "vitest/config";
import { hangMs, waitMs } from "./test/support/hang.ts";

/** The folders of test/ by the house of src/ that they test. */
const houses: Readonly<Record<string, readonly string[]>> = {
  wire: ["growth", "sdk"],
  text: ["formats", "templates"],
  engines: ["doubles", "engine", "models", "programs", "upstream"],
  serve: [
    "clients",
    "cluster",
    "deploy",
    "faults",
    "hosted",
    "http",
    "keys",
    "limits",
    "messages",
    "observe",
    "responses",
    "resume",
    "sessions",
    "store",
    "tokens",
  ],
  page: ["inspect", "page"],
  judge: ["between", "capture", "check", "library"],
};
const sorted = new Set(Object.values(houses).flat());
/** What is about the repository as a whole. */
const others = readdirSync("test").filter((folder) => !sorted.has(folder));

export default defineConfig({
  test: {
    // Tests of servers wait a third of their time. CI has two cores.
    maxWorkers: 3,
    // No test has a time-out of its own: on a busy machine, each would be one more test that fails although nothing is wrong.
    testTimeout: hangMs,
    hookTimeout: hangMs,
    expect: { poll: { timeout: waitMs } },
    projects: [
      ...Object.entries(houses).flatMap(([house, folders]) => [unit(house), blackbox(house, folders)]),
      blackbox("repository", others),
    ],
  },
});

/** The tests next to the code. The files of one worker share the modules that they import: a test that mocks a module belongs in test/. */
function unit(house: string): TestProjectInlineConfiguration {
  return {
    extends: true,
    test: { name: `${house}-unit`, include: [`src/${house}/**/*.test.ts`], isolate: false },
  };
}

/** The tests in folders of test/, where each file has its own modules; those of the page share a browser. */
function blackbox(house: string, folders: readonly string[]): TestProjectInlineConfiguration {
  const include = folders.map((folder) => `test/${folder}/**/*.test.ts`);
  return { extends: true, test: { name: `${house}-blackbox`, include, isolate: house !== "page" } };
}
