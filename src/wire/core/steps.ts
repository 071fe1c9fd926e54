/** A task in steps of about a millisecond: other requests are served between them. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Runs all steps synchronously and returns the result. */
export function runSync<T>(task: Steps<T>): T {
  let step = task.next();
  while (step.done !== true) step = task.next();
  return step.value;
}

/** The number of items (messages, content parts, calls) in one step. */
const itemsPerStep = 64;

/** Counts items to decide when a step ends. */
export class StepCounter {
  #left = itemsPerStep;

  /** Counts `done` items. Returns true if the step should end. */
  endsStep(done = 1): boolean {
    this.#left -= done;
    if (this.#left > 0) return false;
    this.#left = itemsPerStep;
    return true;
  }
}
