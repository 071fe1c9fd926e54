import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HangWatch } from "./model-process.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A watch over a process that answers as `turn` says; undefined: it does not. */
function watching(turn: () => number | null | undefined): {
  watch: HangWatch;
  hung: () => boolean;
  busy: (is: boolean) => void;
} {
  let isHung = false;
  let isBusy = true;
  const watch: HangWatch = new HangWatch(1000, {
    isBusy: () => isBusy,
    ping: () => {
      const answer = turn();
      if (answer !== undefined) watch.sign(answer);
    },
    onHung: () => (isHung = true),
  });
  watch.start();
  return { watch, hung: () => isHung, busy: (is) => (isBusy = is) };
}

test("a process that does not answer is hung when the time is over, not before", () => {
  const { hung } = watching(() => undefined);
  vi.advanceTimersByTime(999);
  expect(hung()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(hung()).toBe(true);
});

test("one that answers and is at the same turn for so long is hung, too", () => {
  const { hung } = watching(() => 7);
  vi.advanceTimersByTime(900);
  expect(hung()).toBe(false);
  vi.advanceTimersByTime(600);
  expect(hung()).toBe(true);
});

test("one whose turns go on, or that waits for work, is not", () => {
  let turn = 0;
  const working = watching(() => turn++);
  const waiting = watching(() => null);
  vi.advanceTimersByTime(60_000);
  expect([working.hung(), waiting.hung()]).toEqual([false, false]);
});

test("without work nobody is watched, and no timer is left", () => {
  const { hung, busy } = watching(() => undefined);
  busy(false);
  vi.advanceTimersByTime(10_000);
  expect(hung()).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});

test("a server that stood still itself does not take that for a hang of the process", () => {
  let answers = true;
  const { watch, hung } = watching(() => (answers ? null : undefined));
  answers = false;
  // One late look, however much time has passed.
  vi.advanceTimersByTime(250);
  expect(hung()).toBe(false);
  watch.sign(null);
  answers = true;
  vi.advanceTimersByTime(5000);
  expect(hung()).toBe(false);
});
