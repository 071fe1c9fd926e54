import {
  chars,
  choice,
  empty,
  mapLeaves,
  optional,
  repeat,
  sequence,
  literal,
  type GrammarExpression,
} from "./expression.ts";
import { codePoints, complement, everyCodePoint, intersection, oneCodePoint, union } from "./code-points.ts";
import type { Grammar } from "./grammar.ts";
import { anyNumber } from "./number-expression.ts";
import { quotedStrings, rawStrings, type StringSyntax } from "./strings.ts";

/** How a format writes values: JSON, Python literals, or JSON with bare keys and its own quote token. */
export interface ValueSyntax {
  /** Distinguishes the syntaxes within one grammar. */
  readonly id: string;
  readonly strings: StringSyntax;
  /** A member's key, including everything up to its value. */
  key(name: string): GrammarExpression;
  /** Keys whose characters match the expression. */
  keys(characters: GrammarExpression): GrammarExpression;
  /** White space inside brackets, and before and after a comma. */
  readonly space: GrammarExpression;
  readonly null: GrammarExpression;
  readonly true: GrammarExpression;
  readonly false: GrammarExpression;
}

/**
 * JSON with bounded white space, so that a model cannot write it forever: one space, or one line end and an indentation of at most 16
 * spaces or 4 tabs, where JSON allows any; after a colon one space. `forbidden`: markers that strings must not contain unescaped.
 */
export function jsonSyntax(grammar: Grammar, forbidden: readonly string[] = []): ValueSyntax {
  const space = grammar.shared("json space", "space", () => {
    const indentation = choice(repeat(literal(" "), 0, 16), repeat(literal("\t"), 1, 4));
    return choice(empty, literal(" "), sequence(literal("\n"), indentation));
  });
  const strings = quotedStrings(grammar, "json", forbidden);
  const colon = sequence(literal(":"), optional(literal(" ")));
  return {
    id: forbidden.length === 0 ? "json" : `json without ${JSON.stringify(forbidden)}`,
    strings,
    key: (name) => sequence(literal(JSON.stringify(name)), colon),
    keys: (characters) => sequence(strings.of(characters), colon),
    space,
    null: literal("null"),
    true: literal("true"),
    false: literal("false"),
  };
}

/** Python: like JSON, with its own names for three values; JSON's names are also allowed. */
export function pythonSyntax(grammar: Grammar): ValueSyntax {
  const strings = quotedStrings(grammar, "python");
  const colon = sequence(literal(":"), optional(literal(" ")));
  return {
    id: "python",
    strings,
    key: (name) => sequence(literal(JSON.stringify(name)), colon),
    keys: (characters) => sequence(strings.of(characters), colon),
    space: optional(literal(" ")),
    null: choice(literal("None"), literal("null")),
    true: choice(literal("True"), literal("true")),
    false: choice(literal("False"), literal("false")),
  };
}

/** gemma's `{city:<|"|>Paris<|"|>,n:3}`. Nothing is escaped inside the quotes, and there is no white space. */
export function looseSyntax(grammar: Grammar, quote: string): ValueSyntax {
  const strings = rawStrings(grammar, { open: quote, close: quote });
  const bareKey = (leaf: GrammarExpression & { kind: "text" | "chars" | "rule" }): GrammarExpression =>
    leaf.kind === "chars" ? chars(intersection(leaf.set, keyCharacters)) : leaf;
  return {
    id: `loose ${quote}`,
    strings,
    key: (name) => {
      const written = /^[\p{L}\p{N}_.-]+$/u.test(name) ? literal(name) : strings.of(literal(name));
      return sequence(written, literal(":"));
    },
    keys: (characters) => sequence(mapLeaves(characters, bareKey), literal(":")),
    space: empty,
    null: literal("null"),
    true: literal("true"),
    false: literal("false"),
  };
}

/** The same syntax with other strings. */
export function asRaw(syntax: ValueSyntax, strings: StringSyntax): ValueSyntax {
  return { ...syntax, id: "raw", strings };
}

const keyCharacters = codePoints("AZ", "az", "09", "_");

/** The characters of any key except these. Empty keys are left out. */
export function anyKeyBut(names: Iterable<string>): GrammarExpression {
  return otherThan(
    [...names].map((name) => [...name]),
    true,
  );
}

function otherThan(names: readonly (readonly string[])[], atStart: boolean): GrammarExpression {
  const any = repeat(chars(everyCodePoint), 0, null);
  const heads = new Set(names.flatMap(([head]) => (head === undefined ? [] : [head])));
  const others = complement(union(...[...heads].map(oneCodePoint)));
  return choice(
    ...(atStart || names.some((name) => name.length === 0) ? [] : [empty]),
    sequence(chars(others), any),
    ...[...heads].map((head) =>
      sequence(
        literal(head),
        otherThan(
          names.filter(([first]) => first === head).map(([, ...rest]) => rest),
          false,
        ),
      ),
    ),
  );
}

/** Any value, object or array in a syntax. */
export function anyValue(
  grammar: Grammar,
  syntax: ValueSyntax,
  kind: "value" | "object" | "array" = "value",
): GrammarExpression {
  return grammar.shared(`${syntax.id} any ${kind}`, kind, () => {
    const { space } = syntax;
    const value = (): GrammarExpression => anyValue(grammar, syntax);
    const several = (item: GrammarExpression): GrammarExpression =>
      optional(sequence(item, repeat(sequence(literal(","), space, item), 0, null), space));
    if (kind === "array") return sequence(literal("["), space, several(value()), literal("]"));
    if (kind === "object")
      return sequence(literal("{"), space, several(sequence(anyKey(grammar, syntax), value())), literal("}"));
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

function anyKey(grammar: Grammar, syntax: ValueSyntax): GrammarExpression {
  return grammar.shared(`${syntax.id} any key`, "key", () => syntax.keys(anyKeyBut([])));
}
