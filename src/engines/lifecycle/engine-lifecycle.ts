import type { EngineHealth } from "../../core/engine.ts";
import type { GenerationEnd, GenerationFailure } from "../../core/events.ts";

/** The end of a generation that outlasts the grace period, or that begins after the engine was told to close. */
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
  /** Ends, with `shuttingDown`, one generation that is still open after the grace period. */
  readonly stop: (open: Open) => void;
  /** Releases whatever else the engine holds. */
  readonly release: () => Promise<void>;
}

/**
 * The state of an engine, its open generations, and how it closes: the same for every kind of engine. `Open` is the engine's own type for
 * an open generation. A new engine is ready; a closed one stays closed.
 */
export class EngineLifecycle<Open> {
  readonly #open = new Set<Open>();
  #state: EngineHealth["state"] = "ready";
  #message: string | undefined;
  #closing: Promise<void> | undefined;
  #onIdle: (() => void) | undefined;

  get state(): EngineHealth["state"] {
    return this.#state;
  }

  /** Generations that have begun and not ended. */
  get open(): ReadonlySet<Open> {
    return this.#open;
  }

  /** The state, and why it is not ready, as `Engine.health` tells them. */
  health(): Pick<EngineHealth, "state" | "message"> {
    return { state: this.#state, ...(this.#message !== undefined && { message: this.#message }) };
  }

  /** Goes over to another state; one sentence says why, where it is not "ready". Nothing happens when the engine is closed. */
  become(state: "ready"): void;
  become(state: "restarting" | "failed", message: string): void;
  become(state: "ready" | "restarting" | "failed", message?: string): void {
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
   * Closes: lets open generations end within `graceMs` (not at all where the engine was not ready), stops the rest, and releases. The
   * promise is the same for every call.
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
