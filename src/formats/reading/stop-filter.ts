import { MarkerSet } from "./marker-set.ts";

/** Ends the visible text at the first of the client's stop strings. What may still become one is held back, nothing else. */
export class StopFilter {
  /** The stop string that was found; nothing may be pushed any more. */
  hit: string | null = null;
  /** Once hit: the stop string and what stood behind it in the same piece. */
  rest = "";
  readonly #set: MarkerSet;
  #node = 0;
  #held = "";

  constructor(stops: readonly string[]) {
    this.#set = new MarkerSet(stops);
  }

  /** Gives the text that is visible now. */
  push(text: string): string {
    const set = this.#set;
    const all = this.#held + text;
    for (let i = this.#held.length; i < all.length; i++) {
      if (this.#node === 0) {
        i = set.skip(all, i);
        if (i === all.length) break;
      }
      this.#node = set.step(this.#node, all.charCodeAt(i));
      const end = set.ends[this.#node] ?? -1;
      if (end < 0) continue;
      this.hit = set.markers[end] ?? null;
      const from = i + 1 - (this.hit?.length ?? 0);
      this.rest = all.slice(from);
      this.#held = "";
      return all.slice(0, from);
    }
    const visible = all.length - (set.depth[this.#node] ?? 0);
    this.#held = all.slice(visible);
    return all.slice(0, visible);
  }

  /** Something that is no visible text follows: what was held is visible. */
  release(): string {
    const held = this.#held;
    this.#held = "";
    this.#node = 0;
    return held;
  }
}
