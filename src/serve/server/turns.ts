import type { Steps } from "../../wire/core/steps.ts";

/** How long one turn may occupy the event loop, in milliseconds. */
const turnMs = 5;

/** Work up to this duration does not wait for a turn, in milliseconds. */
const maxImmediateMs = 2;

const waiting: (() => void)[] = [];

/** Runs in the next iteration of the event loop. Timers, which may run together in one iteration, are used if there is no `setImmediate`. */
const soon: (run: () => void) => void =
  typeof setImmediate === "function" ? setImmediate : (run) => void setTimeout(run, 0);

/**
 * Runs work immediately for up to about 2 ms, and the rest in turns of about 5 ms, between which other requests are served. Several such
 * works take turns, one in each iteration of the event loop. Each step of `work` should take at most a millisecond. Rejects with what a
 * step throws.
 */
export async function inTurns<T>(work: Steps<T>): Promise<T> {
  return startInTurns(work);
}

/** The same without a promise for work that is done immediately, as most is. Throws what one of its first steps throws. */
export function startInTurns<T>(work: Steps<T>): T | Promise<T> {
  const step = runUntil(work, performance.now() + maxImmediateMs);
  return step.done === true ? step.value : restInTurns(work);
}

async function restInTurns<T>(work: Steps<T>): Promise<T> {
  for (;;) {
    await turn();
    const step = runUntil(work, performance.now() + turnMs);
    if (step.done === true) return step.value;
  }
}

/** Runs steps until a time of `performance.now()`, at least one. */
function runUntil<T>(work: Steps<T>, until: number): IteratorResult<unknown, T> {
  for (;;) {
    const step = work.next();
    if (step.done === true || performance.now() >= until) return step;
  }
}

/** Waits for a turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) soon(wakeNext);
  });
}

function wakeNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) soon(wakeNext);
}
