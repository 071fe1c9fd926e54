import { chars, choice, empty, mapLeaves, optional, repeat, sequence, text, type Expression } from "./expression.ts";
import { codePoints, complement, everyCodePoint, intersection, oneCodePoint, union } from "./code-points.ts";
import type { Grammar } from "./grammar.ts";
import { anyNumber } from "./number-expression.ts";
import { quotedStrings, rawStrings, type StringSyntax } from "./strings.ts";

/** How a format writes values: JSON, Python literals, or JSON with bare keys and a quote token of its own. */
export interface ValueSyntax {
  /** Tells the syntaxes apart within one grammar. */
  readonly id: string;
  readonly strings: StringSyntax;
  /** A member's key, with all up to its value. */
  key(name: string): Expression;
  /** Keys whose characters are what the expression matches. */
  keys(characters: Expression): Expression;
  /** May stand inside brackets, before and after a comma. */
  readonly space: Expression;
  readonly null: Expression;
  readonly true: Expression;
  readonly false: Expression;
}

/**
 * JSON. White space is bounded, so that a model that likes it comes to an end: one space, or one line end and an indentation of at
 * most 16 spaces or 4 tabs, where JSON allows any; after a colon one space. `forbidden`: what its strings must not hold as it is.
 */
export function jsonSyntax(grammar: Grammar, forbidden: readonly string[] = []): ValueSyntax {
  const space = grammar.shared("json space", "space", () => {
    const indentation = choice(repeat(text(" "), 0, 16), repeat(text("\t"), 1, 4));
    return choice(empty, text(" "), sequence(text("\n"), indentation));
  });
  const strings = quotedStrings(grammar, "json", forbidden);
  const colon = sequence(text(":"), optional(text(" ")));
  return {
    id: forbidden.length === 0 ? "json" : `json without ${JSON.stringify(forbidden)}`,
    strings,
    key: (name) => sequence(text(JSON.stringify(name)), colon),
    keys: (characters) => sequence(strings.of(characters), colon),
    space,
    null: text("null"),
    true: text("true"),
    false: text("false"),
  };
}

/** Python: as JSON, with its own words for three values; JSON's are read, too, and may be written. */
export function pythonSyntax(grammar: Grammar): ValueSyntax {
  const strings = quotedStrings(grammar, "python");
  const colon = sequence(text(":"), optional(text(" ")));
  return {
    id: "python",
    strings,
    key: (name) => sequence(text(JSON.stringify(name)), colon),
    keys: (characters) => sequence(strings.of(characters), colon),
    space: optional(text(" ")),
    null: choice(text("None"), text("null")),
    true: choice(text("True"), text("true")),
    false: choice(text("False"), text("false")),
  };
}

/** gemma's: `{city:<|"|>Paris<|"|>,n:3}`. Nothing is escaped inside the quotes, and no white space is written. */
export function looseSyntax(grammar: Grammar, quote: string): ValueSyntax {
  const strings = rawStrings(grammar, { open: quote, close: quote });
  const bareKey = (leaf: Expression & { kind: "text" | "chars" | "rule" }): Expression =>
    leaf.kind === "chars" ? chars(intersection(leaf.set, keyCharacters)) : leaf;
  return {
    id: `loose ${quote}`,
    strings,
    key: (name) => {
      const written = /^[\p{L}\p{N}_.-]+$/u.test(name) ? text(name) : strings.of(text(name));
      return sequence(written, text(":"));
    },
    keys: (characters) => sequence(mapLeaves(characters, bareKey), text(":")),
    space: empty,
    null: text("null"),
    true: text("true"),
    false: text("false"),
  };
}

/** The same with strings of another kind. */
export function asRaw(syntax: ValueSyntax, strings: StringSyntax): ValueSyntax {
  return { ...syntax, id: "raw", strings };
}

const keyCharacters = codePoints("AZ", "az", "09", "_");

/** The characters of any key but these. Empty keys, which no one means, are left out. */
export function anyKeyBut(names: Iterable<string>): Expression {
  return otherThan(
    [...names].map((name) => [...name]),
    true,
  );
}

function otherThan(names: readonly (readonly string[])[], atStart: boolean): Expression {
  const any = repeat(chars(everyCodePoint), 0, null);
  const heads = new Set(names.flatMap(([head]) => (head === undefined ? [] : [head])));
  const others = complement(union(...[...heads].map(oneCodePoint)));
  return choice(
    ...(atStart || names.some((name) => name.length === 0) ? [] : [empty]),
    sequence(chars(others), any),
    ...[...heads].map((head) =>
      sequence(
        text(head),
        otherThan(
          names.filter(([first]) => first === head).map(([, ...rest]) => rest),
          false,
        ),
      ),
    ),
  );
}

/** Any value in a syntax; also its `object`s. */
export function anyValue(
  grammar: Grammar,
  syntax: ValueSyntax,
  kind: "value" | "object" | "array" = "value",
): Expression {
  return grammar.shared(`${syntax.id} any ${kind}`, kind, () => {
    const { space } = syntax;
    const value = (): Expression => anyValue(grammar, syntax);
    const several = (item: Expression): Expression =>
      optional(sequence(item, repeat(sequence(text(","), space, item), 0, null), space));
    if (kind === "array") return sequence(text("["), space, several(value()), text("]"));
    if (kind === "object")
      return sequence(text("{"), space, several(sequence(anyKey(grammar, syntax), value())), text("}"));
    return choice(
      anyValue(grammar, syntax, "object"),
      anyValue(grammar, syntax, "array"),
      syntax.strings.any,
      anyNumber,
      syntax.true,
      syntax.false,
      syntax.null,
    );
  });
}

function anyKey(grammar: Grammar, syntax: ValueSyntax): Expression {
  return grammar.shared(`${syntax.id} any key`, "key", () => syntax.keys(anyKeyBut([])));
}
