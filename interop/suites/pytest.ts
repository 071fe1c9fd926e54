import { execFile } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { inPlace } from "../place.ts";
import type { SuiteCase } from "./suite.ts";

export interface PytestOptions {
  /** The interpreter of the environment that has pytest and the suite. */
  readonly python: string;
  /** Files, names of tests and options of pytest. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Folders of modules, before those of the environment. */
  readonly path?: readonly string[];
}

/** The folder of the modules that suites in Python need. */
export const modules: string = resolve("interop/suites/python");

/** Async tests run in one event loop: clients keep their connections for all tests. */
export const oneLoop: readonly string[] = [
  "-o",
  "asyncio_mode=auto",
  "-o",
  "asyncio_default_fixture_loop_scope=session",
  "-o",
  "asyncio_default_test_loop_scope=session",
];

/** Runs pytest, and returns what came of each test. Rejects with what it said where it ran none. */
export function runPytest({ python, args, env, cwd, path = [] }: PytestOptions): Promise<SuiteCase[]> {
  const file = inPlace("logs", "pytest.jsonl");
  rmSync(file, { force: true });
  const all = {
    ...process.env,
    ...env,
    PYTHONPATH: [modules, ...path].join(":"),
    PYTHONDONTWRITEBYTECODE: "1",
    TRUEWIRE_CASES: file,
  };
  const options = { cwd, env: all, maxBuffer: 1 << 28, timeout: 1_200_000 };
  return new Promise((settle, reject) => {
    const given = ["-m", "pytest", "-q", "-p", "cases", "-p", "no:cacheprovider", "-o", "addopts=", ...args];
    execFile(python, given, options, (_, stdout, stderr) => {
      const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
      const cases = lines.filter((line) => line !== "").map((line) => JSON.parse(line) as SuiteCase);
      if (cases.length > 0) return settle(cases);
      reject(new Error(`pytest ran no test: ${`${stdout}\n${stderr}`.trim().slice(-1500)}`));
    });
  });
}
