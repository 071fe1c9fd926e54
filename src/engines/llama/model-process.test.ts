import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { HangWatch } from "./model-process.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A watch of a process that responds with `turn()`, or not at all if that is undefined. */
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

test("a process that does not respond hangs after the timeout, not before", () => {
  const { hung } = watching(() => undefined);
  vi.advanceTimersByTime(999);
  expect(hung()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(hung()).toBe(true);
});

test("a process that responds with the same turn for that time hangs, too", () => {
  const { hung } = watching(() => 7);
  vi.advanceTimersByTime(900);
  expect(hung()).toBe(false);
  vi.advanceTimersByTime(600);
  expect(hung()).toBe(true);
});

test("a process whose turn changes, or that has no work, does not hang", () => {
  let turn = 0;
  const working = watching(() => turn++);
  const waiting = watching(() => null);
  vi.advanceTimersByTime(60_000);
  expect([working.hung(), waiting.hung()]).toEqual([false, false]);
});

test("a process without work is not watched, and no timer is left", () => {
  const { hung, busy } = watching(() => undefined);
  busy(false);
  vi.advanceTimersByTime(10_000);
  expect(hung()).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});

test("a pause of the server itself is not mistaken for a hang of the process", () => {
  let answers = true;
  const { watch, hung } = watching(() => (answers ? null : undefined));
  answers = false;
  // One late check, regardless of how much time has passed.
  vi.advanceTimersByTime(250);
  expect(hung()).toBe(false);
  watch.sign(null);
  answers = true;
  vi.advanceTimersByTime(5000);
  expect(hung()).toBe(false);
});
