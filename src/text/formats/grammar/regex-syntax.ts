import { codePointOf, codePoints, complement, oneCodePoint, union, type CodePoints } from "./code-points.ts";

/** A parsed regular expression. Groups are resolved; anchors are nodes. */
export type RegexNode =
  | { readonly kind: "chars"; readonly set: CodePoints }
  | { readonly kind: "start" }
  | { readonly kind: "end" }
  | { readonly kind: "sequence"; readonly items: readonly RegexNode[] }
  | { readonly kind: "choice"; readonly options: readonly RegexNode[] }
  | { readonly kind: "repeat"; readonly item: RegexNode; readonly min: number; readonly max: number | null };

/** The pattern is malformed, or uses what a grammar cannot express (look-around, back references, word boundaries, flags). */
export class RegexError extends Error {
  override readonly name = "RegexError";
}

const digits = codePoints("09");
const word = codePoints("az", "AZ", "09", "_");
const space = union(
  codePoints("\t\r", " ", "\u00A0", "\u1680", "\u2000\u200A", "\u2028\u2029"),
  codePoints("\u202F", "\u205F", "\u3000", "\uFEFF"),
);
const lineEnds = codePoints("\n", "\r", "\u2028\u2029");
const classes: Readonly<Record<string, CodePoints>> = {
  d: digits,
  D: complement(digits),
  w: word,
  W: complement(word),
  s: space,
  S: complement(space),
};
const controls: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f", v: "\v", "0": "\0" };

/** Limits against patterns that would block the server or the sampler; no pattern in practice comes close. */
const maxCount = 100_000;
const maxLength = 10_000;
const maxDepth = 200;
const maxProperties = 16;

/**
 * Parses a pattern of ECMAScript (`u` flag, as JSON Schema requires), and Python's `(?P<name>`, `\A` and `\Z`, which occur in guided_regex.
 *
 * @throws {RegexError}
 */
export function parseRegex(pattern: string): RegexNode {
  return new RegexParser(pattern).parse();
}

class RegexParser {
  readonly #source: readonly string[];
  #at = 0;
  #depth = 0;
  #properties = 0;

  constructor(pattern: string) {
    if (pattern.length > maxLength) throw new RegexError(`the pattern is longer than ${maxLength} characters`);
    this.#source = [...pattern];
  }

  parse(): RegexNode {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw this.#fail("unmatched )");
    return node;
  }

  #choice(): RegexNode {
    const options = [this.#sequence()];
    while (this.#take("|")) options.push(this.#sequence());
    return options.length === 1 && options[0] ? options[0] : { kind: "choice", options };
  }

  #sequence(): RegexNode {
    const items: RegexNode[] = [];
    for (let next = this.#peek(); next !== undefined && next !== "|" && next !== ")"; next = this.#peek()) {
      items.push(this.#quantified());
    }
    return { kind: "sequence", items };
  }

  #quantified(): RegexNode {
    let item = this.#atom();
    for (let count = this.#quantifier(); count !== null; count = this.#quantifier()) {
      if (item.kind === "start" || item.kind === "end") throw this.#fail("an anchor cannot be repeated");
      // Lazy quantifiers match the same texts; possessive ones do not.
      this.#take("?");
      if (this.#peek() === "+") throw this.#fail("possessive quantifiers are not supported");
      item = { kind: "repeat", item, ...count };
    }
    return item;
  }

  #quantifier(): { min: number; max: number | null } | null {
    if (this.#take("*")) return { min: 0, max: null };
    if (this.#take("+")) return { min: 1, max: null };
    if (this.#take("?")) return { min: 0, max: 1 };
    const braces = /^\{(\d+)(,(\d*))?\}/.exec(this.#source.slice(this.#at, this.#at + 24).join(""));
    if (braces === null) return null;
    this.#at += braces[0].length;
    const min = Number(braces[1]);
    const max = braces[2] === undefined ? min : braces[3] === "" ? null : Number(braces[3]);
    if (max !== null && max < min) throw this.#fail("a range of counts is out of order");
    if (Math.max(min, max ?? 0) > maxCount) throw this.#fail(`more than ${maxCount} repetitions`);
    return { min, max };
  }

  #atom(): RegexNode {
    const character = this.#next();
    switch (character) {
      case "^":
        return { kind: "start" };
      case "$":
        return { kind: "end" };
      case ".":
        return { kind: "chars", set: complement(lineEnds) };
      case "(":
        return this.#group();
      case "[":
        return { kind: "chars", set: this.#class() };
      case "*":
      case "+":
      case "?":
        throw this.#fail("nothing to repeat");
      case "\\":
        return this.#escapeOutside();
      default:
        return { kind: "chars", set: oneCodePoint(character) };
    }
  }

  #group(): RegexNode {
    if (this.#take("?")) {
      const kind = this.#next();
      if (kind === "P" || kind === "<") this.#groupName(kind);
      else if (kind === "=" || kind === "!") throw this.#fail("look-ahead is not supported");
      else if (kind !== ":") throw this.#fail(`group (?${kind} is not supported`);
    }
    if (++this.#depth > maxDepth) throw this.#fail(`groups are nested more than ${maxDepth} deep`);
    const node = this.#choice();
    this.#depth--;
    if (!this.#take(")")) throw this.#fail("a group is not closed");
    return node;
  }

  #groupName(kind: string): void {
    if (kind === "P" && !this.#take("<")) throw this.#fail("back references are not supported");
    if (this.#peek() === "=" || this.#peek() === "!") throw this.#fail("look-behind is not supported");
    while (this.#next() !== ">");
  }

  #escapeOutside(): RegexNode {
    const next = this.#peek() ?? "";
    if (next === "A") return this.#anchor("start");
    if (next === "Z" || next === "z") return this.#anchor("end");
    if (next === "b" || next === "B") throw this.#fail("word boundaries are not supported");
    if (/[1-9k]/.test(next)) throw this.#fail("back references are not supported");
    return { kind: "chars", set: this.#escape() };
  }

  #anchor(kind: "start" | "end"): RegexNode {
    this.#at++;
    return { kind };
  }

  /** The characters of an escape, inside or outside a class. */
  #escape(): CodePoints {
    const letter = this.#next();
    const known = classes[letter];
    if (known !== undefined) return known;
    const control = controls[letter];
    if (control !== undefined) return oneCodePoint(control);
    if (letter === "x") return this.#hex(2);
    if (letter === "u") return this.#take("{") ? this.#bracedHex() : this.#unicode();
    if (letter === "c") return [[codePointOf(this.#next()) % 32, codePointOf(this.#source[this.#at - 1] ?? "") % 32]];
    if (letter === "p" || letter === "P") return this.#property(letter);
    if (/[A-Za-z0-9]/.test(letter)) throw this.#fail(`unknown escape \\${letter}`);
    return oneCodePoint(letter);
  }

  #class(): CodePoints {
    const negated = this.#take("^");
    const parts: CodePoints[] = [];
    while (!this.#take("]")) {
      const first = this.#classAtom();
      if (this.#peek() === "-" && this.#source[this.#at + 1] !== "]" && this.#source[this.#at + 1] !== undefined) {
        this.#at++;
        const last = this.#classAtom();
        const [from, to] = [single(first), single(last)];
        // `[\w-.]`: next to a class escape, the dash is a literal.
        if (from === null || to === null) parts.push(first, oneCodePoint("-"), last);
        else if (from > to) throw this.#fail("a range in a class is out of order");
        else parts.push([[from, to]]);
      } else parts.push(first);
    }
    const set = union(...parts);
    return negated ? complement(set) : set;
  }

  #classAtom(): CodePoints {
    const character = this.#next();
    if (character !== "\\") return oneCodePoint(character);
    if (this.#take("b")) return oneCodePoint("\b");
    return this.#escape();
  }

  #unicode(): CodePoints {
    const high = this.#hexValue(4);
    // A surrogate pair is one character, as with the `u` flag.
    if (high >= 0xd800 && high <= 0xdbff && this.#peek() === "\\" && this.#source[this.#at + 1] === "u") {
      this.#at += 2;
      const low = this.#hexValue(4);
      return oneCodePoint(String.fromCharCode(high, low));
    }
    return [[high, high]];
  }

  #hex(length: number): CodePoints {
    const value = this.#hexValue(length);
    return [[value, value]];
  }

  #bracedHex(): CodePoints {
    let hex = "";
    for (let next = this.#next(); next !== "}"; next = this.#next()) hex += next;
    const value = Number.parseInt(hex, 16);
    if (!/^[0-9a-f]+$/i.test(hex) || value > 0x10ffff) throw this.#fail("a code point is malformed");
    return [[value, value]];
  }

  #hexValue(length: number): number {
    const hex = this.#source.slice(this.#at, this.#at + length).join("");
    if (hex.length !== length || !/^[0-9a-f]+$/i.test(hex)) throw this.#fail("a hexadecimal escape is malformed");
    this.#at += length;
    return Number.parseInt(hex, 16);
  }

  #property(letter: string): CodePoints {
    if (!this.#take("{")) throw this.#fail("a property escape is malformed");
    let name = "";
    for (let next = this.#next(); next !== "}"; next = this.#next()) name += next;
    if (++this.#properties > maxProperties) throw this.#fail(`more than ${maxProperties} property escapes`);
    return propertyMembers(`\\${letter}{${name}}`);
  }

  #peek(): string | undefined {
    return this.#source[this.#at];
  }

  #next(): string {
    const character = this.#source[this.#at];
    if (character === undefined) throw this.#fail("the pattern ends too early");
    this.#at++;
    return character;
  }

  #take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #fail(reason: string): RegexError {
    return new RegexError(`${reason} (at character ${this.#at} of the pattern)`);
  }
}

function single(set: CodePoints): number | null {
  const [range] = set;
  return set.length === 1 && range !== undefined && range[0] === range[1] ? range[0] : null;
}

/** Cached property escapes: there are some hundreds, and each takes milliseconds to look up. */
const properties = new Map<string, CodePoints>();

/** The characters of a property escape such as `\p{L}`, from the runtime's own Unicode tables. */
function propertyMembers(escape: string): CodePoints {
  let members = properties.get(escape);
  if (members) return members;
  try {
    members = membersOf(new RegExp(`${escape}+`, "gu"));
  } catch (error) {
    throw new RegexError(`unknown property ${escape}`, { cause: error });
  }
  properties.set(escape, members);
  return members;
}

/** `runs` matches consecutive characters of one class, which cannot backtrack. */
function membersOf(runs: RegExp): CodePoints {
  const ranges: (readonly [number, number])[] = [];
  for (const block of (blocks ??= allCharacters())) {
    for (const { 0: run } of block.matchAll(runs)) ranges.push([codePointOf(run), codePointOf(lastCharacter(run))]);
  }
  return union(ranges);
}

let blocks: readonly string[] | undefined;

/** All characters, in blocks without surrogates. */
function allCharacters(): readonly string[] {
  const size = 0x800;
  return Array.from({ length: 0x110000 / size }, (_, block) => block * size)
    .filter((start) => start !== 0xd800)
    .map((start) => String.fromCodePoint(...Array.from({ length: size }, (_, i) => start + i)));
}

function lastCharacter(text: string): string {
  const low = text.charCodeAt(text.length - 1);
  return text.slice(low >= 0xdc00 && low <= 0xdfff ? -2 : -1);
}
