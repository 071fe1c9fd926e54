import {
  codePointOf,
  codePoints,
  complement,
  contains,
  intersection,
  oneCodePoint,
  subtract,
  union,
  type CodePoints,
} from "./code-points.ts";
import { chars, choice, mapLeaves, never, repeat, sequence, text, type Expression } from "./expression.ts";
import type { Grammar } from "./grammar.ts";
import { until } from "./until.ts";

/** How a family of formats writes a string, quotes or closing marker included. */
export interface StringSyntax {
  /** Any string. */
  readonly any: Expression;
  /** Any string of so many characters (code points, as JSON Schema counts); `max` null: without end. */
  ofLength(min: number, max: number | null): Expression;
  /** The strings whose characters are what the expression matches; `never` where the syntax can write none of them. */
  of(characters: Expression): Expression;
}

/** JSON string literals, or Python's: theirs know no `\/`, and what is written here means the same in both. */
export function quotedStrings(grammar: Grammar, language: "json" | "python"): StringSyntax {
  const character = grammar.shared(`${language} character`, "char", () => jsonCharacter(language));
  const quote = text('"');
  return {
    any: grammar.shared(`${language} string`, "string", () => sequence(quote, repeat(character, 0, null), quote)),
    ofLength: (min, max) => sequence(quote, repeat(character, min, max), quote),
    of: (characters) => sequence(quote, mapLeaves(characters, canonical), quote),
  };
}

/**
 * Strings without escapes that end at the first `close`. Where their text is constrained, they do not hold the first character of
 * `close`: so they cannot end early, at the price of a character that a grammar could not count otherwise.
 */
export function rawStrings(
  grammar: Grammar,
  { open, close, forbidden = [] }: { open: string; close: string; forbidden?: readonly string[] },
): StringSyntax {
  const starts = codePoints(...[close, ...forbidden].map((marker) => [...marker].slice(0, 1).join("")).filter(Boolean));
  const safe = complement(starts);
  const [before, after] = [text(open), text(close)];
  const keep = (leaf: Expression & { kind: "text" | "chars" | "rule" }): Expression => {
    if (leaf.kind === "chars") return chars(intersection(leaf.set, safe));
    if (leaf.kind === "rule") return leaf;
    return [...leaf.text].some((character) => contains(starts, codePointOf(character))) ? never : leaf;
  };
  return {
    any: sequence(before, until(grammar, close, forbidden)),
    ofLength: (min, max) => sequence(before, repeat(chars(safe), min, max), after),
    of: (characters) => {
      // A literal is known as a whole: it may hold anything that does not end it.
      if (characters.kind !== "text") return sequence(before, mapLeaves(characters, keep), after);
      const written = characters.text + close;
      const endsEarly = written.indexOf(close) < characters.text.length;
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

/**
 * One character of a JSON string in any spelling, where one is one character for JSON Schema, too: a surrogate stands only in a
 * pair.
 */
function jsonCharacter(language: "json" | "python"): Expression {
  const letters = union(
    ...['"', "\\", "b", "f", "n", "r", "t", ...(language === "json" ? ["/"] : [])].map(oneCodePoint),
  );
  const below = choice(
    sequence(chars(codePoints("09", "AC", "ac", "E", "F", "e", "f")), hex, hex, hex),
    sequence(chars(codePoints("D", "d")), chars(codePoints("07")), hex, hex),
  );
  const surrogates = [codePoints("8", "9", "A", "B", "a", "b"), codePoints("CF", "cf")].map((second) =>
    sequence(text("u"), chars(codePoints("D", "d")), chars(second), hex, hex),
  );
  const [high = never, low = never] = surrogates;
  // Python reads two escapes as two characters, so there a pair stands as itself only.
  const pair = language === "json" ? [sequence(high, text("\\"), low)] : [];
  return choice(chars(plain), sequence(text("\\"), choice(chars(letters), sequence(text("u"), below), ...pair)));
}

/** A leaf of an expression over characters, as it stands in a JSON string: one spelling a character, the one of `JSON.stringify`. */
function canonical(leaf: Expression & { kind: "text" | "chars" | "rule" }): Expression {
  if (leaf.kind === "rule") return leaf;
  if (leaf.kind === "text") return text(JSON.stringify(leaf.text).slice(1, -1));
  const escaped: Expression[] = [];
  let long = intersection(leaf.set, control);
  let letters: CodePoints = [];
  for (const [character, letter] of shortEscapes) {
    if (!contains(leaf.set, codePointOf(character))) continue;
    letters = union(letters, oneCodePoint(letter));
    long = subtract(long, oneCodePoint(character));
  }
  escaped.push(sequence(text("\\"), chars(letters)));
  for (const half of [0, 16]) {
    const digits = [..."0123456789abcdef"].filter((_, i) => contains(long, half + i)).map(oneCodePoint);
    escaped.push(sequence(text(`\\u00${half / 16}`), chars(union(...digits))));
  }
  return choice(chars(intersection(leaf.set, plain)), ...escaped);
}
