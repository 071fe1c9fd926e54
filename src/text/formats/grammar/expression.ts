import { codePointOf, type CodePoints } from "./code-points.ts";

/** The right side of a grammar rule. The functions below build it in a simplified form: `never` and empty parts are removed. */
export type GrammarExpression =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "chars"; readonly set: CodePoints }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly items: readonly GrammarExpression[] }
  | { readonly kind: "choice"; readonly options: readonly GrammarExpression[] }
  /** `max` null: unlimited. */
  | { readonly kind: "repeat"; readonly item: GrammarExpression; readonly min: number; readonly max: number | null };

/** Matches the empty text. */
export const empty: GrammarExpression = { kind: "text", text: "" };

/** Matches no text: the expression of an unsatisfiable schema. */
export const never: GrammarExpression = { kind: "choice", options: [] };

export function literal(value: string): GrammarExpression {
  return value === "" ? empty : { kind: "text", text: value };
}

/** One character of a set. */
export function chars(set: CodePoints): GrammarExpression {
  const [range] = set;
  if (range === undefined) return never;
  return set.length === 1 && range[0] === range[1] ? literal(String.fromCodePoint(range[0])) : { kind: "chars", set };
}

export function rule(name: string): GrammarExpression {
  return { kind: "rule", name };
}

export function sequence(...parts: readonly GrammarExpression[]): GrammarExpression {
  return sequenceOf(parts);
}

/** Like `sequence`, for a list that may be longer than an argument list can be. */
export function sequenceOf(parts: readonly GrammarExpression[]): GrammarExpression {
  const items: GrammarExpression[] = [];
  for (const part of parts.flatMap((part) => (part.kind === "sequence" ? part.items : [part]))) {
    if (isNever(part)) return never;
    const last = items.at(-1);
    if (part.kind === "text" && last?.kind === "text") items[items.length - 1] = literal(last.text + part.text);
    else if (!isEmpty(part)) items.push(part);
  }
  if (items.length === 0) return empty;
  return items.length === 1 ? (items[0] ?? empty) : { kind: "sequence", items };
}

export function choice(...options: readonly GrammarExpression[]): GrammarExpression {
  return choiceOf(options);
}

/** Like `choice`, for a list that may be longer than an argument list can be. */
export function choiceOf(options: readonly GrammarExpression[]): GrammarExpression {
  if (options.length === 1 && options[0]) return options[0];
  const kept: GrammarExpression[] = [];
  const seen = new Set<string>();
  for (const option of options.flatMap((option) => (option.kind === "choice" ? option.options : [option]))) {
    const key = JSON.stringify(option);
    if (!seen.has(key)) kept.push(option);
    seen.add(key);
  }
  return kept.length === 1 ? (kept[0] ?? never) : { kind: "choice", options: kept };
}

/** `item` between `min` and `max` times; `max` null: unlimited. */
export function repeat(item: GrammarExpression, min: number, max: number | null): GrammarExpression {
  if (max !== null && max < min) return never;
  if (max === 0 || isEmpty(item)) return empty;
  if (isNever(item)) return min === 0 ? empty : never;
  return min === 1 && max === 1 ? item : { kind: "repeat", item, min, max };
}

export function optional(item: GrammarExpression): GrammarExpression {
  return repeat(item, 0, 1);
}

export function isEmpty(expression: GrammarExpression): boolean {
  return expression.kind === "text" && expression.text === "";
}

export function isNever(expression: GrammarExpression): boolean {
  return expression.kind === "choice" && expression.options.length === 0;
}

/** Replaces every leaf (text, characters, reference) by the result of `change`. */
export function mapLeaves(
  expression: GrammarExpression,
  change: (leaf: GrammarExpression & { kind: "text" | "chars" | "rule" }) => GrammarExpression,
): GrammarExpression {
  switch (expression.kind) {
    case "sequence":
      return sequenceOf(expression.items.map((item) => mapLeaves(item, change)));
    case "choice":
      return choiceOf(expression.options.map((option) => mapLeaves(option, change)));
    case "repeat":
      return repeat(mapLeaves(expression.item, change), expression.min, expression.max);
    default:
      return change(expression);
  }
}

/** The minimum and maximum length, in characters, of the texts of an expression without references; `max` null: unlimited. */
export function lengths(expression: GrammarExpression): { min: number; max: number | null } {
  switch (expression.kind) {
    case "text": {
      const length = [...expression.text].length;
      return { min: length, max: length };
    }
    case "chars":
      return { min: 1, max: 1 };
    case "rule":
      return { min: 0, max: null };
    case "sequence": {
      const parts = expression.items.map(lengths);
      return {
        min: parts.reduce((sum, part) => sum + part.min, 0),
        max: parts.reduce<number | null>((sum, { max }) => (sum === null || max === null ? null : sum + max), 0),
      };
    }
    case "choice": {
      const parts = expression.options.map(lengths);
      return {
        min: Math.min(...parts.map((part) => part.min)),
        max: parts.some((part) => part.max === null) ? null : Math.max(...parts.map((part) => part.max ?? 0)),
      };
    }
    case "repeat": {
      const item = lengths(expression.item);
      const max = expression.max === null || item.max === null ? null : expression.max * item.max;
      return { min: expression.min * item.min, max: item.max === 0 ? 0 : max };
    }
  }
}

/** The GBNF spelling of a literal. */
export function quoted(value: string): string {
  return `"${[...value].map((character) => literalEscapes[character] ?? escaped(character, /["\\]/)).join("")}"`;
}

const literalEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** The GBNF spelling of a character class. Everything except letters and digits is written as a number, so no other escapes are needed. */
export function bracketed(set: CodePoints): string {
  const end = (codePoint: number): string => escaped(String.fromCodePoint(codePoint), /[^A-Za-z0-9]/);
  const range = ([first, last]: readonly [number, number]): string =>
    first === last ? end(first) : `${end(first)}-${end(last)}`;
  return `[${set.map(range).join("")}]`;
}

function escaped(character: string, special: RegExp): string {
  const value = codePointOf(character);
  if (value >= 0x20 && value < 0x7f && !special.test(character)) return character;
  const hex = value.toString(16).toUpperCase();
  if (value <= 0xff) return `\\x${hex.padStart(2, "0")}`;
  return value <= 0xffff ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
