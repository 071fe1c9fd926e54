import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";

const minuteMs = 60_000;

/**
 * A reporter of Vitest for CI: after `TRUEWIRE_TEST_MINUTES` minutes (default 40) it prints which files and tests are running, and ends the
 * run with exit code 1. Each test has a time-out, but where many hang, or where a file never gives way, a run would go on for hours and say
 * nothing.
 */
export default class TestLimit implements Reporter {
  readonly #minutes: number;
  readonly #exit: () => void;
  /** By file: when it began, and its tests that have not ended. */
  readonly #running = new Map<string, { readonly since: number; readonly tests: Set<string> }>();
  #timer: NodeJS.Timeout | undefined;

  constructor({
    minutes = Number(process.env["TRUEWIRE_TEST_MINUTES"] ?? 40),
    exit = (): void => process.exit(1),
  } = {}) {
    this.#minutes = minutes;
    this.#exit = exit;
  }

  onInit(vitest: Pick<Vitest, "cancelCurrentRun">): void {
    this.#timer = setTimeout(() => this.#end(vitest), this.#minutes * minuteMs);
  }

  onTestModuleStart({ relativeModuleId }: Pick<TestModule, "relativeModuleId">): void {
    this.#running.set(relativeModuleId, { since: Date.now(), tests: new Set() });
  }

  onTestCaseReady(test: RunningTest): void {
    this.#running.get(test.module.relativeModuleId)?.tests.add(test.fullName);
  }

  onTestCaseResult(test: RunningTest): void {
    this.#running.get(test.module.relativeModuleId)?.tests.delete(test.fullName);
  }

  onTestModuleEnd({ relativeModuleId }: Pick<TestModule, "relativeModuleId">): void {
    this.#running.delete(relativeModuleId);
  }

  onTestRunEnd(): void {
    clearTimeout(this.#timer);
  }

  #end(vitest: Pick<Vitest, "cancelCurrentRun">): void {
    const lines = [...this.#running].flatMap(([file, { since, tests }]) => [
      `  ${file}, for ${Math.round((Date.now() - since) / 1000)} s`,
      ...[...tests].map((test) => `    ${test}`),
    ]);
    console.error(
      `The tests have not ended within ${this.#minutes} minutes. These files and tests are running:\n${lines.join("\n")}`,
    );
    process.exitCode = 1;
    // The report is written when the run was cancelled. A worker that never gives way cannot be cancelled.
    this.#timer = setTimeout(this.#exit, minuteMs);
    vitest.cancelCurrentRun("test-failure").catch(() => {});
  }
}

type RunningTest = Pick<TestCase, "fullName"> & { readonly module: Pick<TestModule, "relativeModuleId"> };
