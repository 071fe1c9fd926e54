import { defineConfig } from "vitest/config";
import { hangMs, waitMs } from "./test/support/hang.ts";

export default defineConfig({
  test: {
    // Tests of servers wait a third of their time. CI has two cores.
    maxWorkers: 3,
    // No test has a time-out of its own: on a busy machine, each would be one more test that fails although nothing is wrong.
    testTimeout: hangMs,
    hookTimeout: hangMs,
    expect: { poll: { timeout: waitMs } },
    projects: [
      // The files of one worker share the modules that they import. A test that mocks a module belongs in test/, where each file has its own.
      { extends: true, test: { name: "unit", include: ["src/**/*.test.ts"], isolate: false } },
      { extends: true, test: { name: "blackbox", include: ["test/**/*.test.ts"] } },
    ],
  },
});
