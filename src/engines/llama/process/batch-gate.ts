/**
 * Decides when the library sends its batch. By itself it sends one as soon as the event loop turns, with whichever sequences have asked
 * by then; closed, the gate holds it until all of a step have. What asks between steps goes through at once.
 */
export class BatchGate {
  #closed = false;
  #held: (() => void) | undefined;

  /** For the library's option `batching.dispatchSchedule`. */
  readonly schedule = (dispatch: () => void): void => {
    if (this.#closed) this.#held = dispatch;
    else setImmediate(dispatch);
  };

  close(): void {
    this.#closed = true;
  }

  open(): void {
    this.#closed = false;
    const held = this.#held;
    this.#held = undefined;
    held?.();
  }

  /** When all that was asked so far has reached the library's queue. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}
