/** Lets works in one after the other, in the order in which they came. */
export class OneAtATime {
  #last: Promise<void> = Promise.resolve();

  /** `ready`: all who came before have left. `leave` is to be called whatever happens. */
  enter(): { readonly ready: Promise<void>; readonly leave: () => void } {
    const ready = this.#last;
    let leave = (): void => {};
    const left = new Promise<void>((resolve) => (leave = resolve));
    this.#last = ready.then(() => left);
    return { ready, leave };
  }
}
