/** Ids of exactly nine letters or digits, which Mistral's models require: the end of the original id, unless another id has the same end. */
export class ShortIds {
  readonly #shortOf = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** Lower numbers are in use. */
  #number = 0;

  /** The short id of an id; the same for each call. */
  of(id: string): string {
    let short = this.#shortOf.get(id);
    if (short === undefined) {
      short = id
        .replace(/[^a-zA-Z0-9]/g, "")
        .slice(-9)
        .padStart(9, "0");
      if (this.#taken.has(short)) {
        do short = String(this.#number++).padStart(9, "0");
        while (this.#taken.has(short));
      }
      this.#taken.add(short);
      this.#shortOf.set(id, short);
    }
    return short;
  }
}
