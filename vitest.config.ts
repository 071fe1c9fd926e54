import { existsSync, readdirSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import type { TestProjectInlineConfiguration } from "vitest/config";
import { BaseSequencer } from "vitest/node";
import type { TestSpecification } from "vitest/node";
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
    "files",
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

/** What mocks modules that `src/` imports: the only files with modules of their own. */
const mocking = [
  "test/engine/open-encoder.test.ts",
  "test/library/download-guards.test.ts",
  "test/observe/logger.test.ts",
];

const source = resolve("src") + sep;
const folderOfBuild = resolve(process.env["TRUEWIRE_DIST"] ?? "dist") + sep;
const built = new RegExp(`^${folderOfBuild.replaceAll(/[^\w/-]/g, "\\$&")}`);

/**
 * What a test in test/ imports from src/ is the file of the build, which Node loads by itself: each file of tests loads up to 600 modules,
 * and does so in a fifth of the time. The page has no such files. In `.ci/run` (TRUEWIRE_TEST_BUILD), the same holds for tests next to the code.
 */
const importingTheBuild: Plugin = {
  name: "imports the build",
  enforce: "pre",
  resolveId(id, importer) {
    if (importer === undefined || !id.startsWith(".")) return undefined;
    const path = resolve(dirname(importer), id);
    if (!path.startsWith(source)) return undefined;
    const file = folderOfBuild + path.slice(source.length).replace(/\.ts$/, ".js");
    return !path.startsWith(source + "page") && existsSync(file) ? { id: file, external: true } : undefined;
  },
};

/** What takes longest begins first: at the end, the other workers would wait for it. */
const longest = ["test/docs/docs", "test/growth/readers-writers", "test/engine/images", "test/engine/draft-model"];

/**
 * The files of a project one after the other. Vitest keeps a worker, with its modules and its browser, only while the next file in the queue
 * is of the same project; in Vitest's own order, by size, it hardly ever is.
 */
class ByProject extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId, project }: TestSpecification): string => {
      const at = longest.findIndex((file) => moduleId.endsWith(`/${file}.test.ts`));
      if (at !== -1) return `0 ${at}`;
      if (project.config.isolate) return "2";
      return project.name.endsWith("-unit") ? `3 ${project.name}` : `1 ${project.name}`;
    };
    return (await super.sort(files)).toSorted((a, b) => placeOf(a).localeCompare(placeOf(b)));
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: ByProject },
    // Tests of servers wait a third of their time. CI has two cores.
    maxWorkers: 3,
    // The files of one worker share the modules that they import, which to load takes a second of CPU for each file of test/ otherwise. So a
    // test puts back what it changes in its process; spies and variables are put back here.
    isolate: false,
    setupFiles: process.env["TRUEWIRE_CPU_TIMES"] === undefined ? [] : ["test/support/cpu-of-files.ts"],
    restoreMocks: true,
    unstubEnvs: true,
    // No test has a time-out of its own: on a busy machine, each would be one more test that fails although nothing is wrong.
    testTimeout: hangMs,
    hookTimeout: hangMs,
    expect: { poll: { timeout: waitMs } },
    projects: [
      ...Object.entries(houses).flatMap(([house, folders]) => [unit(house), blackbox(house, folders)]),
      blackbox("repository", others),
      { extends: true, test: { name: "mocking", include: mocking, isolate: true } },
    ],
  },
});

/** The tests next to the code. A test that mocks a module belongs in test/. */
function unit(house: string): TestProjectInlineConfiguration {
  const test = { name: `${house}-unit`, include: [`src/${house}/**/*.test.ts`] };
  return process.env["TRUEWIRE_TEST_BUILD"] === undefined ? { extends: true, test } : ofBuild(test);
}

/** The tests in folders of test/. */
function blackbox(house: string, folders: readonly string[]): TestProjectInlineConfiguration {
  const include = folders.map((folder) => `test/${folder}/**/*.test.ts`);
  return ofBuild({ name: `${house}-blackbox`, include, exclude: mocking });
}

function ofBuild(test: NonNullable<TestProjectInlineConfiguration["test"]>): TestProjectInlineConfiguration {
  return { extends: true, plugins: [importingTheBuild], test: { ...test, server: { deps: { external: [built] } } } };
}
