import type { AdapterScales } from "./adapter-scales.ts";

/** Choices with different adapters cannot be evaluated in one pass: those with the same ones take turns. */
export class AdapterTurns {
  #last: AdapterScales = "";

  /** Those whose turn it is. */
  next<T>(all: readonly T[], adaptersOf: (one: T) => AdapterScales): readonly T[] {
    const kinds = [...new Set(all.map(adaptersOf))];
    const turn = kinds[(kinds.indexOf(this.#last) + 1) % kinds.length] ?? "";
    this.#last = turn;
    return kinds.length === 1 ? all : all.filter((one) => adaptersOf(one) === turn);
  }
}
