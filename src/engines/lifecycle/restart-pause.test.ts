import { expect, test } from "vitest";
import { RestartPause } from "./restart-pause.ts";

// After nine crashes in a few minutes there were no more restarts.
test("the first restart is immediate, the next ones after exponentially longer pauses of up to a minute", () => {
  const pause = new RestartPause();
  const pauses = Array.from({ length: 12 }, (_, i) => pause.next(i * 1000));
  expect(pauses).toEqual([0, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
  expect(pause.crashes).toBe(12);
});

test("after two minutes without a crash, the next one counts as the first", () => {
  const pause = new RestartPause();
  pause.next(0);
  expect(pause.next(100_000)).toBe(250);
  expect(pause.next(220_001)).toBe(0);
});

test("after an answer a crash counts as the first", () => {
  const pause = new RestartPause();
  for (let i = 0; i < 9; i++) pause.next(i * 1000);
  pause.succeeded();
  expect(pause.next(10_000)).toBe(0);
});
