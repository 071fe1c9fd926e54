import { expect, test } from "vitest";
import { RestartPause } from "./restart-pause.ts";

test("the first restart is at once, the next ones wait longer and longer, and at last there is none", () => {
  const pause = new RestartPause();
  const pauses = Array.from({ length: 9 }, (_, i) => pause.next(i * 1000));
  expect(pauses).toEqual([0, 250, 500, 1000, 2000, 4000, 8000, 16_000, null]);
});

test("after a calm minute a crash counts as the first", () => {
  const pause = new RestartPause();
  pause.next(0);
  expect(pause.next(1000)).toBe(250);
  expect(pause.next(62_000)).toBe(0);
});
