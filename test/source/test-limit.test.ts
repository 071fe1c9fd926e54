import { afterEach, expect, test, vi } from "vitest";
import TestLimit from "../support/test-limit.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const module = (relativeModuleId: string): { readonly relativeModuleId: string } => ({ relativeModuleId });

/** A run of 40 minutes at most, in which one file has ended and another one has not. */
function begun(): { readonly limit: TestLimit; readonly done: string[]; readonly said: () => string } {
  vi.useFakeTimers();
  const error = vi.spyOn(console, "error").mockImplementation(() => {});
  const done: string[] = [];
  const limit = new TestLimit({ minutes: 40, exit: () => done.push("exit") });
  limit.onInit({ cancelCurrentRun: async (reason) => void done.push(reason) });
  const hung = module("test/a.test.ts");
  const ended = module("test/b.test.ts");
  limit.onTestModuleStart(hung);
  limit.onTestModuleStart(ended);
  limit.onTestModuleEnd(ended);
  limit.onTestCaseReady({ module: hung, fullName: "a suite > ends" });
  limit.onTestCaseResult({ module: hung, fullName: "a suite > ends" });
  limit.onTestCaseReady({ module: hung, fullName: "a suite > hangs" });
  return { limit, done, said: () => error.mock.calls.join("\n") };
}

// A run whose tests hung went on for more than 90 minutes, and said neither that nor which.
test("a run that does not end names what is running, and is cancelled; what cannot be cancelled is killed", () => {
  const exitCode = process.exitCode;
  const { done, said } = begun();
  vi.advanceTimersByTime(40 * 60_000 - 1);
  expect([done, said()]).toEqual([[], ""]);
  vi.advanceTimersByTime(1);
  expect([done, process.exitCode]).toEqual([["test-failure"], 1]);
  process.exitCode = exitCode;
  expect(said()).toBe(
    "The tests have not ended within 40 minutes. These files and tests are running:\n  test/a.test.ts, for 2400 s\n    a suite > hangs",
  );
  vi.advanceTimersByTime(60_000);
  expect(done).toEqual(["test-failure", "exit"]);
});

test("of a run that ends, it says nothing", () => {
  const { limit, done, said } = begun();
  limit.onTestRunEnd();
  vi.advanceTimersByTime(100 * 60_000);
  expect([done, said()]).toEqual([[], ""]);
});
