/** Ids of exactly nine letters or digits, as Mistral's models take them: the end of the id itself, unless another id has that already. */
export class ShortIds {
  readonly #shortOf = new Map<string, string>();
  readonly #taken = new Set<string>();
  /** Lower numbers are taken. */
  #number = 0;

  /** The short id that represents this one; the same for every call with it. */
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
