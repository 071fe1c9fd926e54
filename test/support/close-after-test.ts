import { onTestFinished } from "vitest";

/** Calls `close` when the current test has finished, after what was registered later. Call it inside a test or a function that a test calls. */
export function closeAfterTest(close: () => unknown): void {
  onTestFinished(async () => {
    await close();
  });
}
