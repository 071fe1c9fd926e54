import {
  codePointOf,
  contains,
  everyCodePoint,
  oneCodePoint,
  subtract,
  union,
  type CodePoints,
} from "./code-points.ts";
import { chars, choice, empty, sequence, text, type Expression } from "./expression.ts";
import type { Grammar } from "./grammar.ts";

/**
 * Any text up to and including the first `end`. It holds none of `forbidden`, which a reader would take for something else; one that
 * `end` begins with is allowed as that beginning only.
 *
 * It is the automaton that searches for all of them at once (Knuth–Morris–Pratt, Aho–Corasick) as right-linear rules: a state is
 * what of a marker has been read, and a character leads to one state only, so that there is never more than one parse open.
 */
export function until(grammar: Grammar, end: string, forbidden: readonly string[] = []): Expression {
  const others = forbidden.filter((marker) => marker !== "" && marker !== end && !end.startsWith(marker));
  const committed = Math.min(
    ...forbidden
      .filter((marker) => marker !== "" && marker !== end && end.startsWith(marker))
      .map(({ length }) => length),
  );
  return end === "" ? empty : new Search(grammar, end, others, committed).state("");
}

/**
 * What follows the opening quote of a string: characters of `plain` and escapes, in which none of `forbidden` appears, up to and
 * including a closing quote that does not complete one of them either.
 */
export function untilQuote(
  grammar: Grammar,
  { plain, escape, forbidden }: { plain: CodePoints; escape: Expression; forbidden: readonly string[] },
): Expression {
  return new Search(grammar, '"', forbidden, Infinity, { plain, escape }).state("");
}

class Search {
  readonly #grammar: Grammar;
  readonly #end: string;
  readonly #forbidden: readonly string[];
  readonly #markers: readonly string[];
  /** With so much of `end` read, the rest must follow. */
  readonly #committed: number;
  readonly #key: string;
  /** The characters of all markers. */
  readonly #named: ReadonlySet<string>;
  /** The characters that are in no marker. */
  readonly #others: CodePoints;

  readonly #inString: { readonly plain: CodePoints; readonly escape: Expression } | undefined;

  constructor(
    grammar: Grammar,
    end: string,
    forbidden: readonly string[],
    committed: number,
    inString?: { readonly plain: CodePoints; readonly escape: Expression },
  ) {
    this.#inString = inString;
    this.#grammar = grammar;
    this.#end = end;
    this.#forbidden = forbidden;
    this.#markers = [end, ...forbidden];
    this.#committed = committed;
    this.#key = `until ${JSON.stringify(this.#markers)} ${committed} ${JSON.stringify(inString ?? null)}`;
    this.#named = new Set(this.#markers.flatMap((marker) => [...marker]));
    this.#others = subtract(inString?.plain ?? everyCodePoint, union(...[...this.#named].map(oneCodePoint)));
  }

  state(read: string): Expression {
    return this.#grammar.shared(`${this.#key} ${read}`, "until", () => {
      const onTheWay = this.#end.startsWith(read) && read.length >= this.#committed;
      return onTheWay ? text(this.#end.slice(read.length)) : this.#next(read);
    });
  }

  #next(read: string): Expression {
    const byNext = new Map<string, CodePoints[]>([["", [this.#others]]]);
    const options: Expression[] = [];
    for (const character of this.#named) {
      const reached = read + character;
      const completes = this.#markers.find((marker) => reached.endsWith(marker));
      if (completes === this.#end && !this.#forbidden.some((marker) => reached.endsWith(marker) && this.#inString)) {
        options.push(text(character));
      } else if (
        completes === undefined &&
        (!this.#inString || contains(this.#inString.plain, codePointOf(character)))
      ) {
        const next = this.#longestBeginning(reached);
        const sets = byNext.get(next);
        if (sets) sets.push(oneCodePoint(character));
        else byNext.set(next, [oneCodePoint(character)]);
      }
    }
    if (this.#inString) options.push(sequence(this.#inString.escape, this.state("")));
    for (const [next, sets] of byNext) options.push(sequence(chars(union(...sets)), this.state(next)));
    return choice(...options);
  }

  /** The longest beginning of a marker that what was read ends with. */
  #longestBeginning(reached: string): string {
    for (let start = 0; start < reached.length; start++) {
      const tail = reached.slice(start);
      if (this.#markers.some((marker) => marker.startsWith(tail))) return tail;
    }
    return "";
  }
}
