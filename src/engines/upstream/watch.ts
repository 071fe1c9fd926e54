import { inBackground } from "./background.ts";

/** Something with a time-out for silence. */
export interface Watched {
  /** Called every `tickMs`. */
  tick(tickMs: number): void;
}

/**
 * One timer for all open answers. A timer for each would have to be set anew with every event; here an event costs nothing.
 */
export class Watch {
  readonly #tickMs: number;
  #watched = new Set<Watched>();
  #timer: NodeJS.Timeout | undefined;

  /** `shortestMs`: the shortest time-out that is to be kept; it is kept to a quarter. */
  constructor(shortestMs: number) {
    this.#tickMs = Math.max(10, Math.min(1000, Math.floor(shortestMs / 4)));
  }

  add(watched: Watched): void {
    this.#watched.add(watched);
    this.#timer ??= inBackground(setInterval(() => this.#tick(), this.#tickMs));
  }

  remove(watched: Watched): void {
    this.#watched.delete(watched);
  }

  #tick(): void {
    for (const each of this.#watched) each.tick(this.#tickMs);
    if (this.#watched.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
