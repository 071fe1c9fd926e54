/** A work in steps of about a millisecond at most: others may have their turn between them. */
export type Steps<T> = Generator<undefined, T, undefined>;

/** What a work comes to, done at once. */
export function atOnce<T>(work: Steps<T>): T {
  let step = work.next();
  while (step.done !== true) step = work.next();
  return step.value;
}

/** So many small things (messages, parts of one, calls) are looked at in one step: fewer are done before a step would be worth it. */
const many = 64;

/** Tells when a step has lasted long enough. */
export class Pace {
  #left = many;

  /** Some more was done, of so many small things. true: it is time for a pause. */
  isOver(done = 1): boolean {
    this.#left -= done;
    if (this.#left > 0) return false;
    this.#left = many;
    return true;
  }
}
