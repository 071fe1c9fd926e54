import type { Vocabulary } from "./vocabulary.ts";

/** Of more tokens than this part of the vocabulary it is not worth saying which they are. */
const mostOfAll = 1 / 8;

/** The tokens of a vocabulary by their first two bytes, so that few need to be looked at where few characters may come next. */
export class TokensByBeginning {
  /** They may come wherever a text may end. */
  readonly ends: readonly number[];
  /** More than so many are too many to be told apart. */
  readonly most: number;
  readonly #byFirst: number[][] = Array.from({ length: 256 }, () => []);
  /** By both bytes: `first * 256 + second`. */
  readonly #byBoth = new Map<number, number[]>();
  /** Tokens of one byte. */
  readonly #alone: number[][] = Array.from({ length: 256 }, () => []);

  constructor(vocabulary: Pick<Vocabulary, "size" | "bytes" | "endTokens">) {
    this.ends = vocabulary.endTokens();
    this.most = vocabulary.size * mostOfAll;
    const ends = new Set(this.ends);
    for (let token = 0; token < vocabulary.size; token++) {
      // Each is to be told once, whatever its name is.
      if (ends.has(token)) continue;
      const [first, second] = vocabulary.bytes(token);
      if (first === undefined) continue;
      this.#byFirst[first]?.push(token);
      if (second === undefined) this.#alone[first]?.push(token);
      else addTo(this.#byBoth, first * 256 + second, token);
    }
  }

  /** Those whose first byte is this one; their second is one of `seconds` where those are given, or they have none. */
  beginning(first: number, seconds?: Iterable<number>): readonly (readonly number[])[] {
    if (!seconds) return [this.#byFirst[first] ?? []];
    const both = Array.from(seconds, (second) => this.#byBoth.get(first * 256 + second) ?? []);
    return [this.#alone[first] ?? [], ...both];
  }
}

function addTo(lists: Map<number, number[]>, key: number, token: number): void {
  const list = lists.get(key);
  if (list) list.push(token);
  else lists.set(key, [token]);
}
