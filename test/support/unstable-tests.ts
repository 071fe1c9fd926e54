import type { Reporter, TestCase } from "vitest/node";

/**
 * A reporter of Vitest for CI, which runs a failed test a second time: at the end it prints each test that passed only then, with the error
 * of its first try. Such a test, or what it tests, has a defect that shows at times; the run says so, and does not fail.
 */
export default class UnstableTests implements Reporter {
  readonly #print: (text: string) => void;
  readonly #found: string[] = [];

  constructor({ print = console.log }: { print?: (text: string) => void } = {}) {
    this.#print = print;
  }

  onTestCaseResult(test: Retried): void {
    if (test.diagnostic()?.flaky !== true) return;
    const errors = test.result().errors ?? [];
    const said = errors.map(({ message, stack }) => `  ${(stack ?? message).replaceAll("\n", "\n  ")}`);
    this.#found.push([`unstable ${test.module.relativeModuleId} > ${test.fullName}`, ...said].join("\n"));
  }

  onTestRunEnd(): void {
    for (const one of this.#found) this.#print(one);
    if (this.#found.length > 0) this.#print(`${this.#found.length} passed at the second try only`);
  }
}

type Retried = Pick<TestCase, "diagnostic" | "fullName" | "result"> & {
  readonly module: { readonly relativeModuleId: string };
};
