import type { Steps } from "../core/steps.ts";

/** So long one may hold the event loop before others have their turn, in milliseconds. */
const turnMs = 5;

/** What takes no longer is done at once, without waiting for a turn. */
const briefMs = 2;

const waiting: (() => void)[] = [];

/** In the next round of the event loop: timers that are due together run in one. Workers of browsers' kind have only those. */
const soon: (run: () => void) => void =
  typeof setImmediate === "function" ? setImmediate : (run) => void setTimeout(run, 0);

/**
 * Does a long piece of work in turns of about 5 ms; between them other requests are served. Several such works take one turn each, and
 * never two in one round of the event loop. `work`: each step of it is to take a millisecond at most. Rejects with what a step throws.
 */
export async function inTurns<T>(work: Iterator<unknown, T, undefined>): Promise<T> {
  for (;;) {
    await turn();
    const until = performance.now() + turnMs;
    do {
      const step = work.next();
      if (step.done === true) return step.value;
    } while (performance.now() < until);
  }
}

/** Does a work at once where that takes no more than about 2 ms, and else what is left of it in turns. Rejects with what a step throws. */
export async function takeSteps<T>(work: Steps<T>): Promise<T> {
  const until = performance.now() + briefMs;
  do {
    const step = work.next();
    if (step.done === true) return step.value;
  } while (performance.now() < until);
  return inTurns(work);
}

/** Waits until it is one's turn for a piece of such work. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) soon(give);
  });
}

function give(): void {
  waiting.shift()?.();
  if (waiting.length > 0) soon(give);
}
