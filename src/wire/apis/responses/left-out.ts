import { GrowingList, GrowingMap } from "./state/history.ts";

interface Skipped {
  /** Of the first item. */
  readonly path: string;
  readonly count: number;
}

/** What was left out of a history, by reason, and the reasons in their order. */
export interface ReadLeftOut {
  readonly skipped: GrowingMap<Skipped>;
  readonly reasons: GrowingList<string>;
}

export const nothingLeftOut: ReadLeftOut = { skipped: new GrowingMap(), reasons: new GrowingList() };

/** The items of a conversation that were left out: one warning for each reason. */
export class LeftOut {
  readonly #before: ReadLeftOut;
  /** By reason, including what `#before` has of the same reasons. */
  readonly #skipped = new Map<string, Skipped>();

  constructor(before: ReadLeftOut) {
    this.#before = before;
  }

  soFar(): ReadLeftOut {
    const { skipped, reasons } = this.#before;
    return {
      skipped: skipped.with(this.#skipped),
      reasons: reasons.with([...this.#skipped.keys()].filter((reason) => skipped.get(reason) === undefined)),
    };
  }

  skip(path: string, reason: string): void {
    const known = this.#skipped.get(reason) ?? this.#before.skipped.get(reason);
    this.#skipped.set(reason, known ? { path: known.path, count: known.count + 1 } : { path, count: 1 });
  }

  /** Returns a sentence for each reason, with the place of its first item. */
  warnings(): string[] {
    const { skipped, reasons } = this.#before;
    return [...new Set([...reasons.toArray(), ...this.#skipped.keys()])].map((reason) => {
      const { path, count } = this.#skipped.get(reason) ?? skipped.get(reason) ?? { path: "", count: 0 };
      return `${path}${count > 1 ? ` and ${count - 1} more` : ""}: ${reason}`;
    });
  }
}
