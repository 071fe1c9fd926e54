import * as z from "zod";
import { nearest } from "../../wire/core/nearest.ts";
import type { ConfigProblem } from "./config-error.ts";
import { removedSettings } from "./removed-settings.ts";

/** What may be written for a schema: in a file, or in code. */
export type Written<Schema extends z.ZodType> = Unchanged<z.input<Schema>>;
/** What a schema makes of it: numbers, times in milliseconds, sizes in bytes, with its defaults. */
export type Parsed<Schema extends z.ZodType> = Unchanged<z.output<Schema>>;

/** With read-only lists and mappings. What is made in code, such as an engine, keeps its type. */
type Unchanged<T> = T extends { readonly generate: unknown } | ((...given: never[]) => unknown)
  ? T
  : [keyof T] extends [never]
    ? T
    : T extends readonly (infer Item)[]
      ? readonly Unchanged<Item>[]
      : T extends object
        ? { readonly [Member in keyof T]: Unchanged<T[Member]> }
        : T;

/**
 * The words for a value that does not fit: `what` is what a person would write there, with an example. A schema that has no words of
 * its own gets `expectation`.
 */
export function expected(what: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => (input === undefined ? `is missing; expected ${what}` : `expected ${what}`);
}

/** A text that is not empty. */
export function text(what: string): z.ZodString {
  const error = expected(what);
  return z.string({ error }).min(1, { error });
}

/** A text that may be empty. */
export function anyText(what: string): z.ZodString {
  return z.string({ error: expected(what) });
}

export function flag(): z.ZodBoolean {
  return z.boolean({ error: expected("true or false") });
}

export function oneOf<const Values extends readonly [string, ...string[]]>(
  values: Values,
): z.ZodEnum<{ [Value in Values[number]]: Value }> {
  return z.enum(values, { error: expected(alternatives(values)) });
}

export function listShape<Item extends z.ZodType>(item: Item, what: string): z.ZodArray<Item> {
  return z.array(item, { error: expected(what) });
}

/** Names of the user's own, each with a value. */
export function mappingOf<Value extends z.ZodType>(value: Value, what: string): z.ZodRecord<z.ZodString, Value> {
  return z.record(z.string(), value, { error: expected(what) });
}

/** Names that are ours; another one is refused. */
export function settings<Shape extends z.ZodRawShape>(shape: Shape, what: string): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => unknownSetting(key, Object.keys(shape))).join("\n")
        : expected(what)(issue),
  });
}

function unknownSetting(typed: string, known: readonly string[]): string {
  if (Object.hasOwn(removedSettings, typed)) return removedSettings[typed] ?? "";
  const meant = nearest(typed, known);
  return meant === undefined ? "there is no such setting" : `there is no such setting; did you mean ${meant}?`;
}

/** A number, from `minimum` to `maximum`. */
export function decimal(minimum: number, maximum?: number): z.ZodNumber {
  const error = expected(`a number${range(minimum, maximum)}`);
  const number = z.number({ error }).min(minimum, { error });
  return maximum === undefined ? number : number.max(maximum, { error });
}

/** A whole number, as the API has it: not as a text. */
export function wholeNumber(minimum?: number): z.ZodInt {
  const error = expected(minimum === undefined ? "a whole number" : `a whole number${range(minimum, undefined)}`);
  return minimum === undefined ? z.int({ error }) : z.int({ error }).min(minimum, { error });
}

/** A whole number; a text of digits counts, since options and `${VARIABLES}` are texts. */
export function integer(minimum: number, maximum?: number): z.ZodType<number, number | string> {
  const error = expected(`a whole number${range(minimum, maximum)}`);
  const number = z.int({ error }).min(minimum, { error });
  return z
    .union([z.int({ error }), z.string().regex(/^\d+$/, { error })], { error })
    .transform(Number)
    .pipe(maximum === undefined ? number : number.max(maximum, { error }));
}

function range(minimum: number, maximum: number | undefined): string {
  return maximum === undefined ? `, ${minimum} or more` : ` from ${minimum} to ${maximum}`;
}

/**
 * What a schema without words of its own expected: those of a format's description (docs/formats.md), and the bounds of whole numbers
 * in JavaScript.
 */
export function expectation(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      return expected(typeNames[issue.expected as string] ?? String(issue.expected))(issue);
    case "invalid_value":
      return expected(alternatives(issue.values.map((value) => JSON.stringify(value))))(issue);
    case "invalid_union":
      return issue.discriminator === undefined
        ? expected("another kind of value")(issue)
        : `expected a known ${issue.discriminator}`;
    case "too_small":
      return issue.origin === "string" ? "expected a text that is not empty" : `expected at least ${issue.minimum}`;
    case "too_big":
      return `expected at most ${issue.maximum}`;
    default:
      return undefined;
  }
}

const typeNames: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  tuple: "a list",
  object: "a mapping",
  record: "a mapping",
};

/** `a, b or c` */
function alternatives(values: readonly string[]): string {
  const last = values.at(-1) ?? "";
  return values.length < 2 ? last : `${values.slice(0, -1).join(", ")} or ${last}`;
}

/** What is wrong, as a sentence for people. */
export function problemsOf(issue: z.core.$ZodIssue): ConfigProblem[] {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  if (issue.code === "unrecognized_keys") {
    const messages = issue.message.split("\n");
    return issue.keys.map((key, at) => ({ path: [...path, key], message: messages[at] ?? "there is no such setting" }));
  }
  const closer = issue.code === "invalid_union" ? insideOf(issue.errors) : undefined;
  if (!closer) return [{ path, message: issue.message }];
  return closer.flatMap(problemsOf).map((problem) => ({ ...problem, path: [...path, ...problem.path] }));
}

/** Of a value that may be one thing or another, the problems within it, where it is one of them as a whole: a list with a wrong item. */
function insideOf(errors: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] | undefined {
  return errors.find((issues) => issues.length > 0 && issues.every(({ path }) => path.length > 0));
}
