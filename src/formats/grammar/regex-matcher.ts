import { codePointOf, contains, type CodePoints } from "./code-points.ts";
import { parseRegex, RegexError, type RegexNode } from "./regex-syntax.ts";

/** More places than this in an automaton make a pattern that nobody means. */
const maxPlaces = 20_000;
/** Sets of places whose moves are remembered; when there are more, all are forgotten. */
const maxSets = 1000;

/**
 * Matches a pattern of a client in time that is linear in the text, whatever the pattern: all ways through it are followed side by
 * side, none is tried after another. Reference: K. Thompson, "Regular expression search algorithm", CACM 11 (1968), with the sets of
 * places kept as a deterministic automaton that grows while it is used.
 */
export class RegexMatcher {
  readonly pattern: string;
  readonly #places: readonly Place[];
  readonly #first: number;
  #sets = new Map<string, PlaceSet>();

  /** @throws {RegexError} for what is no pattern, is too large, or asks for look-around, back references or word boundaries. */
  constructor(pattern: string) {
    this.pattern = pattern;
    const builder = new Builder();
    this.#first = builder.build(parseRegex(pattern), builder.add({ kind: "match" }));
    this.#places = builder.places;
  }

  /** Whether the pattern matches anywhere in the text, as `RegExp.test` with the `u` flag has it. */
  test(text: string): boolean {
    let at = this.#reached([this.#first], true);
    for (const character of text) {
      if (at.matches) return true;
      at = this.#moved(at, codePointOf(character));
    }
    return at.matches || at.matchesAtEnd;
  }

  toString(): string {
    return this.pattern;
  }

  #moved(from: PlaceSet, value: number): PlaceSet {
    let to = from.moves.get(value);
    if (to === undefined) {
      const next: number[] = [];
      for (const index of from.places) {
        const place = this.#places[index];
        if (place?.kind === "chars" && contains(place.set, value)) next.push(place.next);
      }
      // A match may begin at any character.
      next.push(this.#first);
      from.moves.set(value, (to = this.#reached(next, false)));
    }
    return to;
  }

  /** The set of places that are reached from these without a character. */
  #reached(starts: readonly number[], atStart: boolean): PlaceSet {
    const places = this.#closure(starts, atStart, false);
    const key = `${atStart} ${places.join()}`;
    let known = this.#sets.get(key);
    if (known === undefined) {
      // Those that are forgotten here live on only as long as a running `test` holds them.
      if (this.#sets.size >= maxSets) this.#sets = new Map();
      const isMatch = (index: number): boolean => this.#places[index]?.kind === "match";
      known = {
        places,
        matches: places.some(isMatch),
        matchesAtEnd: this.#closure(starts, atStart, true).some(isMatch),
        moves: new Map(),
      };
      this.#sets.set(key, known);
    }
    return known;
  }

  #closure(starts: readonly number[], atStart: boolean, atEnd: boolean): number[] {
    const seen = new Set<number>();
    const todo = [...starts];
    for (let index = todo.pop(); index !== undefined; index = todo.pop()) {
      if (seen.has(index)) continue;
      seen.add(index);
      const place = this.#places[index];
      if (place?.kind === "fork") todo.push(...place.next);
      else if ((place?.kind === "start" && atStart) || (place?.kind === "end" && atEnd)) todo.push(place.next);
    }
    return [...seen].sort((a, b) => a - b);
  }
}

type Place =
  | { readonly kind: "match" }
  | { readonly kind: "chars"; readonly set: CodePoints; readonly next: number }
  | { readonly kind: "start" | "end"; readonly next: number }
  | { readonly kind: "fork"; readonly next: number[] };

interface PlaceSet {
  readonly places: readonly number[];
  readonly matches: boolean;
  /** It matches if nothing follows. */
  readonly matchesAtEnd: boolean;
  readonly moves: Map<number, PlaceSet>;
}

/** Makes the places of a pattern, from its end to its beginning. */
class Builder {
  readonly places: Place[] = [];

  add(place: Place): number {
    if (this.places.length >= maxPlaces) throw new RegexError("the pattern is too large");
    return this.places.push(place) - 1;
  }

  /** The place from which `node` leads to `next`. */
  build(node: RegexNode, next: number): number {
    switch (node.kind) {
      case "chars":
        return this.add({ kind: "chars", set: node.set, next });
      case "start":
      case "end":
        return this.add({ kind: node.kind, next });
      case "sequence":
        return node.items.reduceRight((after, item) => this.build(item, after), next);
      case "choice":
        return this.add({ kind: "fork", next: node.options.map((option) => this.build(option, next)) });
      case "repeat":
        return this.#repeat(node, next);
    }
  }

  #repeat({ item, min, max }: RegexNode & { readonly kind: "repeat" }, next: number): number {
    let at = next;
    if (max === null) {
      const ways = [next];
      at = this.add({ kind: "fork", next: ways });
      ways.push(this.build(item, at));
    } else {
      // Each further one, or the end of all of them.
      for (let i = min; i < max; i++) at = this.add({ kind: "fork", next: [this.build(item, at), next] });
    }
    for (let i = 0; i < min; i++) at = this.build(item, at);
    return at;
  }
}
