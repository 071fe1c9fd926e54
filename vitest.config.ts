import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Tests of servers wait a third of their time. CI has two cores.
    maxWorkers: 3,
    // On a busy machine of two cores a browser needs more than vitest's second.
    expect: { poll: { timeout: 30_000 } },
    projects: [
      // A property tries hundreds of cases, which on a busy machine takes its time, too.
      // The files of one worker share the modules that they import. A test that mocks a module belongs in test/, where each file has its own.
      {
        extends: true,
        test: { name: "unit", include: ["src/**/*.test.ts"], testTimeout: 60_000, isolate: false },
      },
      // Servers are started, models are loaded: on a busy machine of two cores that takes its time.
      {
        extends: true,
        test: { name: "blackbox", include: ["test/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 120_000 },
      },
    ],
  },
});
