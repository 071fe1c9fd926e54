import {
  codePointOf,
  codePoints,
  type CodePoints,
  complement,
  includesCodePoint,
  everyCodePoint,
  intersection,
  oneCodePoint,
  subtract,
  union,
} from "./code-points.ts";
import {
  chars,
  choice,
  empty,
  type GrammarExpression,
  mapLeaves,
  never,
  repeat,
  sequence,
  literal,
} from "./expression.ts";
import type { Grammar } from "./grammar.ts";
import type { TaggedText } from "./tagged-text.ts";

/** How formats write a string, including its quotes or closing marker. */
export interface StringSyntax {
  /** Any string. */
  readonly any: GrammarExpression;
  /** Any string with `min` to `max` characters (code points, as JSON Schema counts); `max` null: unlimited. */
  ofLength(min: number, max: number | null): GrammarExpression;
  /** The strings whose characters match the expression; `never` if the syntax can write none of them. */
  of(characters: GrammarExpression): GrammarExpression;
  /** One character of a set as it is written in a string; `never` if the syntax can write none of them. */
  spell(set: CodePoints): GrammarExpression;
  /** A string whose characters were already converted with `spell`. */
  around(spelled: GrammarExpression): GrammarExpression;
}

/**
 * String literals of JSON or Python. Python has no `\/`; everything that is written means the same in both. `forbidden`: markers that would
 * end the value around them; they are written with escapes.
 */
export function quotedStrings(
  grammar: Grammar,
  language: "json" | "python",
  forbidden: readonly string[] = [],
): StringSyntax {
  const id = `${language} ${JSON.stringify(forbidden)}`;
  const safe = subtract(plain, firstCharacters(forbidden));
  const character = grammar.shared(`${id} character`, "char", () => choice(chars(safe), escapeSequence(language)));
  const quote = literal('"');
  const rest = (): GrammarExpression =>
    forbidden.length === 0
      ? sequence(repeat(character, 0, null), quote)
      : untilQuote(grammar, {
          plain,
          escape: grammar.shared(`${language} escape`, "escape", () => escapeSequence(language)),
          forbidden,
        });
  const leaf = (part: Leaf): GrammarExpression =>
    part.kind === "chars" ? canonicalSet(part.set, safe) : canonicalText(part, forbidden);
  return {
    any: grammar.shared(`${id} string`, "string", () => sequence(quote, rest())),
    ofLength: (min, max) => sequence(quote, repeat(character, min, max), quote),
    of: (characters) => sequence(quote, mapLeaves(characters, leaf), quote),
    spell: (set) => canonicalSet(set, safe),
    around: (spelled) => sequence(quote, spelled, quote),
  };
}

type Leaf = GrammarExpression & { kind: "text" | "chars" | "rule" };

function firstCharacters(markers: readonly string[]): CodePoints {
  return union(...markers.flatMap(([first]) => (first === undefined ? [] : [oneCodePoint(first)])));
}

/**
 * Strings without escapes that end at the first `close`; with `texts`, at the close where that automaton ends. If their text is constrained,
 * they do not contain the first character of `close`, so that they cannot end early; a grammar could not count the characters otherwise.
 * `edge` (a line end, for example) is inside both markers and not part of the string.
 */
export function rawStrings(
  grammar: Grammar,
  {
    open,
    close,
    edge = "",
    forbidden = [],
    texts,
  }: { open: string; close: string; edge?: string; forbidden?: readonly string[]; texts?: TaggedText | undefined },
): StringSyntax {
  const starts = union(
    ...[close, ...forbidden].flatMap(([first]) => (first === undefined ? [] : [oneCodePoint(first)])),
  );
  const safe = complement(starts);
  const [before, after] = [literal(open + edge), literal(edge + close)];
  const keep = (leaf: Leaf): GrammarExpression => {
    if (leaf.kind === "chars") return chars(intersection(leaf.set, safe));
    if (leaf.kind === "rule") return leaf;
    return [...leaf.text].some((character) => includesCodePoint(starts, codePointOf(character))) ? never : leaf;
  };
  return {
    any: sequence(
      before,
      texts?.expression(grammar) ?? until(grammar, edge + close, edge === "" ? forbidden : [close, ...forbidden]),
    ),
    ofLength: (min, max) => sequence(before, repeat(chars(safe), min, max), after),
    spell: (set) => chars(intersection(set, safe)),
    around: (spelled) => sequence(before, spelled, after),
    of: (characters) => {
      // A literal is completely known: it may contain anything that does not end it.
      if (characters.kind !== "text") return sequence(before, mapLeaves(characters, keep), after);
      if (texts !== undefined) return texts.accepts(characters.text) ? sequence(before, characters, after) : never;
      const endsEarly = (characters.text + edge + close).indexOf(close) < characters.text.length + edge.length;
      return endsEarly || forbidden.some((marker) => characters.text.includes(marker))
        ? never
        : sequence(before, characters, after);
    },
  };
}

const hex = chars(codePoints("09", "AF", "af"));
const control: CodePoints = [[0, 0x1f]];
const plain = complement(union(control, oneCodePoint('"'), oneCodePoint("\\")));
const shortEscapes = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["\b", "b"],
  ["\f", "f"],
  ["\n", "n"],
  ["\r", "r"],
  ["\t", "t"],
]);

/** The rest of an escape in a JSON string that represents one character as JSON Schema counts: surrogates only in pairs. */
function escapeSequence(language: "json" | "python"): GrammarExpression {
  const letters = union(
    ...['"', "\\", "b", "f", "n", "r", "t", ...(language === "json" ? ["/"] : [])].map(oneCodePoint),
  );
  const below = choice(
    sequence(chars(codePoints("09", "AC", "ac", "EF", "ef")), hex, hex, hex),
    sequence(chars(codePoints("D", "d")), chars(codePoints("07")), hex, hex),
  );
  const [high = never, low = never] = [codePoints("89", "AB", "ab"), codePoints("CF", "cf")].map((second) =>
    sequence(literal("u"), chars(codePoints("D", "d")), chars(second), hex, hex),
  );
  // Python reads two escapes as two characters, so there a surrogate pair is written only as the character itself.
  const pair = language === "json" ? [sequence(high, literal("\\"), low)] : [];
  return sequence(literal("\\"), choice(chars(letters), sequence(literal("u"), below), ...pair));
}

/** Characters as they are written in a JSON string: with the one spelling of `JSON.stringify`, except for those that must be escaped. */
function canonicalSet(set: CodePoints, safe: CodePoints): GrammarExpression {
  let long = subtract(set, safe);
  let letters: CodePoints = [];
  for (const [character, letter] of shortEscapes) {
    if (!includesCodePoint(set, codePointOf(character))) continue;
    letters = union(letters, oneCodePoint(letter));
    long = subtract(long, oneCodePoint(character));
  }
  const escaped = long.flatMap(([first, last]) =>
    Array.from({ length: last - first + 1 }, (_, i) => `\\u${(first + i).toString(16).padStart(4, "0")}`),
  );
  return choice(chars(intersection(set, safe)), sequence(literal("\\"), chars(letters)), ...sharedBeginnings(escaped));
}

/** `\\u0000`, `\\u0001`, … combined into classes of their last digit. */
function sharedBeginnings(escapes: readonly string[]): readonly GrammarExpression[] {
  const byStart = new Map<string, CodePoints>();
  for (const escape of escapes) {
    const start = escape.slice(0, -1);
    byStart.set(start, union(byStart.get(start) ?? [], oneCodePoint(escape.slice(-1))));
  }
  return [...byStart].map(([start, digits]) => sequence(literal(start), chars(digits)));
}

function canonicalText(leaf: Leaf, forbidden: readonly string[]): GrammarExpression {
  if (leaf.kind !== "text") return leaf;
  const written = JSON.stringify(leaf.text).slice(1, -1);
  const endsValue = forbidden.some((marker) => written.includes(marker) || `${written}"`.includes(marker));
  if (!endsValue) return literal(written);
  const starts = firstCharacters(forbidden);
  const safe = [...written].map((character) =>
    includesCodePoint(starts, codePointOf(character))
      ? `\\u${codePointOf(character).toString(16).padStart(4, "0")}`
      : character,
  );
  return literal(safe.join(""));
}

/**
 * Any text up to and including the first `end`. It contains none of `forbidden`, which a parser would treat differently; of a forbidden
 * marker that is a prefix of `end`, only that occurrence is allowed.
 *
 * This is the automaton that searches for all markers at once (Knuth–Morris–Pratt, Aho–Corasick) as right-linear rules: a state is the
 * marker prefix that was read, and every character leads to exactly one state, so that there is only one parse.
 */
export function until(grammar: Grammar, end: string, forbidden: readonly string[] = []): GrammarExpression {
  const others = forbidden.filter((marker) => marker !== "" && marker !== end && !end.startsWith(marker));
  const committed = Math.min(
    ...forbidden
      .filter((marker) => marker !== "" && marker !== end && end.startsWith(marker))
      .map(({ length }) => length),
  );
  return end === "" ? empty : new Search(grammar, end, others, committed).state("");
}

/**
 * The text after the opening quote of a string: characters of `plain` and escapes without any of `forbidden`, up to and including a closing
 * quote that does not complete one of them either.
 */
function untilQuote(
  grammar: Grammar,
  { plain, escape, forbidden }: { plain: CodePoints; escape: GrammarExpression; forbidden: readonly string[] },
): GrammarExpression {
  return new Search(grammar, '"', forbidden, Infinity, { plain, escape }).state("");
}

class Search {
  readonly #grammar: Grammar;
  readonly #end: string;
  readonly #forbidden: readonly string[];
  readonly #markers: readonly string[];
  /** Once this number of characters of `end` was read, the rest must follow. */
  readonly #committed: number;
  readonly #key: string;
  /** The characters of all markers. */
  readonly #named: ReadonlySet<string>;
  /** The characters that are in no marker. */
  readonly #others: CodePoints;

  readonly #inString: { readonly plain: CodePoints; readonly escape: GrammarExpression } | undefined;

  constructor(
    grammar: Grammar,
    end: string,
    forbidden: readonly string[],
    committed: number,
    inString?: { readonly plain: CodePoints; readonly escape: GrammarExpression },
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

  state(read: string): GrammarExpression {
    return this.#grammar.shared(`${this.#key} ${read}`, "until", () => {
      const onTheWay = this.#end.startsWith(read) && read.length >= this.#committed;
      return onTheWay ? literal(this.#end.slice(read.length)) : this.#next(read);
    });
  }

  #next(read: string): GrammarExpression {
    const byNext = new Map<string, CodePoints[]>([["", [this.#others]]]);
    const options: GrammarExpression[] = [];
    for (const character of this.#named) {
      const reached = read + character;
      const completes = this.#markers.find((marker) => reached.endsWith(marker));
      if (completes === this.#end && !this.#forbidden.some((marker) => reached.endsWith(marker) && this.#inString)) {
        options.push(literal(character));
      } else if (
        completes === undefined &&
        (!this.#inString || includesCodePoint(this.#inString.plain, codePointOf(character)))
      ) {
        const next = this.#longestPrefix(reached);
        const sets = byNext.get(next);
        if (sets) sets.push(oneCodePoint(character));
        else byNext.set(next, [oneCodePoint(character)]);
      }
    }
    if (this.#inString) options.push(sequence(this.#inString.escape, this.state("")));
    for (const [next, sets] of byNext) options.push(sequence(chars(union(...sets)), this.state(next)));
    return choice(...options);
  }

  /** The longest marker prefix that is a suffix of the text read so far. */
  #longestPrefix(reached: string): string {
    for (let start = 0; start < reached.length; start++) {
      const tail = reached.slice(start);
      if (this.#markers.some((marker) => marker.startsWith(tail))) return tail;
    }
    return "";
  }
}
