/** Whether a client has left before its answer was complete: as a fact, for one listener, and as a signal. */
export class Departure {
  #happened = false;
  #controller: AbortController | undefined;
  #listener: (() => void) | undefined;

  get happened(): boolean {
    return this.#happened;
  }

  /** Created on first use: creating an AbortSignal takes Node longer than reading a request. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#happened) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Calls `listener` when the client leaves, unless it has left; null removes the listener. */
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
