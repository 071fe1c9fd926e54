import type { EngineHealth } from "../../wire/core/engine.ts";
import type { GenerationEnd, GenerationFailure } from "../../wire/core/events.ts";

/** The end of a generation that exceeds the grace period, or that begins while the engine closes. */
export const shuttingDown: Extract<GenerationEnd, { readonly failure: GenerationFailure }> = {
  kind: "shutdown",
  failure: {
    message: "The server is stopping.",
    status: 503,
    kind: "unavailable",
    param: null,
    code: "shutting_down",
  },
};

/** What an engine does when it closes. */
export interface Closing<Open> {
  /** Ends a generation that is open after the grace period with `shuttingDown`. */
  readonly stop: (open: Open) => void;
  /** Releases the engine's resources. */
  readonly release: () => Promise<void>;
}

/** The open generations of an engine. */
interface OpenGenerations<Open> extends Iterable<Open> {
  readonly size: number;
  add(open: Open): unknown;
  delete(open: Open): unknown;
}

/**
 * The state of an engine, its open generations, and how it closes. `Open` is the engine's type for an open generation. A new engine is
 * ready; a closed engine stays closed.
 */
export class EngineLifecycle<Open> {
  readonly #open: OpenGenerations<Open>;
  #state: EngineHealth["state"] = "ready";
  #message: string | undefined;
  #closing: Promise<void> | undefined;
  #onIdle: (() => void) | undefined;

  /** `open`: an empty collection for the open generations; an `OpenList` costs less than a `Set`. */
  constructor(open: OpenGenerations<Open> = new Set<Open>()) {
    this.#open = open;
  }

  get state(): EngineHealth["state"] {
    return this.#state;
  }

  /** The open generations. */
  get open(): Iterable<Open> & { readonly size: number } {
    return this.#open;
  }

  /** The state and its message, for `Engine.health`. */
  health(): Pick<EngineHealth, "state" | "message"> {
    return { state: this.#state, ...(this.#message !== undefined && { message: this.#message }) };
  }

  /** Changes the state; `message` is one sentence that says why it is not "ready". Has no effect on a closed engine. */
  setState(state: "ready"): void;
  setState(state: "restarting" | "failed", message: string): void;
  setState(state: "ready" | "restarting" | "failed", message?: string): void {
    if (this.#state === "closed") return;
    this.#state = state;
    this.#message = message;
  }

  begin(generation: Open): void {
    this.#open.add(generation);
  }

  end(generation: Open): void {
    this.#open.delete(generation);
    if (this.#open.size === 0) this.#onIdle?.();
  }

  /**
   * Closes the engine: waits up to `graceMs` for open generations (not if the engine is not ready), stops the others, and releases the
   * resources. Every call returns the same promise.
   */
  close(graceMs: number, closing: Closing<Open>): Promise<void> {
    return (this.#closing ??= this.#close(graceMs, closing));
  }

  async #close(graceMs: number, { stop, release }: Closing<Open>): Promise<void> {
    const drains = this.#state === "ready" && this.#open.size > 0 && graceMs > 0;
    this.#state = "closed";
    this.#message = undefined;
    if (drains) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#onIdle = (): void => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const generation of this.#open) stop(generation);
    await release();
  }
}
