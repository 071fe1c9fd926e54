/** Whether a client has left before its answer was complete: as a fact, for one listener, and as a signal. */
export class Departure {
  #happened = false;
  #controller: AbortController | undefined;
  #listener: (() => void) | undefined;

  get happened(): boolean {
    return this.#happened;
  }

  /** Made for those who ask for it: the making of an AbortSignal costs Node more than the reading of a request. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#happened) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Calls `listener` when the client leaves, unless it has left; null: nobody is to be called any more. */
  listen(listener: (() => void) | null): void {
    this.#listener = listener ?? undefined;
  }

  /** The client has left. */
  happen(): void {
    if (this.#happened) return;
    this.#happened = true;
    this.#controller?.abort();
    this.#listener?.();
  }
}
