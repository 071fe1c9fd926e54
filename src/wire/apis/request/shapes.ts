import * as z from "zod";
import { isObject } from "../../core/json.ts";
import { runSync, StepCounter, type Steps } from "../../core/steps.ts";

/**
 * The maximum sizes of a request. Real requests are far below them; larger ones would delay other requests. docs/serving.md lists them.
 */

/** Messages of a conversation, or items of an input. */
export const maxMessages = 20_000;
/** Parts, blocks or items of one message; choices, results and sources within it. */
export const maxParts = 5000;
/** Calls of one message. */
export const maxCalls = 5000;
/** OpenAI accepts 128; coding agents with many tool servers send hundreds. */
export const maxTools = 4096;
/** Characters that a response repeats of its request: instructions, tools, formats. */
export const maxRepeatedLength: number = 4 * 1024 * 1024;
/** Unknown members: each is forwarded to the engine. */
export const maxUnknownMembers = 1000;

/**
 * The schemas that request parameters are made of. Their `error` messages are not shown to clients: they give `issueFailure` OpenAI's
 * name for the expected type, which an issue of zod does not contain.
 */

/** Sets the text after "expected …" in the error for a wrong type. */
export function expecting(phrase: string): { error: (issue: { readonly code?: string }) => string | undefined } {
  return { error: ({ code }) => (code === "invalid_type" || code === "invalid_union" ? phrase : undefined) };
}

/** Marks a range as one of integers; other numbers are "decimal" in error messages. */
export const integerMark = "integer";

export function integerShape(minimum?: number, maximum?: number): z.ZodType<number> {
  let shape = z.int(expecting("an integer"));
  if (minimum !== undefined) shape = shape.min(minimum, integerMark);
  if (maximum !== undefined) shape = shape.max(maximum, integerMark);
  return shape;
}

/** An integer that may be too large for a JavaScript number to hold exactly, such as a 64-bit seed. */
export function wideIntegerShape(): z.ZodType<number> {
  return z.number(expecting("an integer")).refine(Number.isInteger, { params: { expected: "an integer" } });
}

export function decimalShape(minimum?: number, maximum?: number): z.ZodType<number> {
  let shape = z.number();
  if (minimum !== undefined) shape = shape.min(minimum);
  if (maximum !== undefined) shape = shape.max(maximum);
  return shape;
}

/** Any JSON object, unchanged. The code that uses it checks its members. */
export function anyObject(): z.ZodType<Record<string, unknown>> {
  return z.unknown().transform((value: unknown, { issues }): Record<string, unknown> => {
    if (isObject(value)) return value as Record<string, unknown>;
    issues.push({ code: "invalid_type", expected: "object", input: value, message: "an object" });
    return z.NEVER;
  });
}

export function strings(most: number, least = 0): z.ZodType<string[]> {
  return list(z.string(), { phrase: "an array of strings", least, most });
}

/** A string, or an array of strings: `stop`, `dry_sequence_breakers`. */
export function stringOrStrings(most: number): z.ZodType<string | string[]> {
  return z.union([z.string(), strings(most)], expecting("one of a string or array of strings"));
}

/**
 * A list of at most `most` items. Checking ends at the first invalid item: zod's own arrays keep an issue for each of a million invalid
 * items, which costs gigabytes. `phrase` as in `expecting`.
 */
export function list<T>(
  item: z.ZodType<T>,
  { phrase, least = 0, most }: { readonly phrase?: string; readonly least?: number; readonly most: number },
): z.ZodType<T[]> {
  const shape: z.ZodType<T[]> = z.unknown().transform((value: unknown, { issues }): T[] => {
    const refuse = (issue: z.core.$ZodRawIssue): never => {
      issues.push(issue);
      return z.NEVER;
    };
    if (!Array.isArray(value)) {
      return refuse({ code: "invalid_type", expected: "array", input: value, ...(phrase && { message: phrase }) });
    }
    if (value.length < least) {
      return refuse({ code: "too_small", origin: "array", minimum: least, inclusive: true, input: value });
    }
    if (value.length > most) {
      return refuse({ code: "too_big", origin: "array", maximum: most, inclusive: true, input: value });
    }
    const lists = currentLists ?? new CheckedLists();
    const checked = lists.get(value, shape) ?? runSync(checkItems(lists, item, value));
    // The items are results of `item`.
    if ("items" in checked) return checked.items as T[];
    const { error, at } = checked;
    const [first] = error.issues;
    return refuse({ code: "custom", ...first, path: [at, ...(first?.path ?? [])], input: value[at] });
  });
  listShapes.set(shape, { item, most });
  return shape;
}

/** The schemas that `list` has made. */
const listShapes = new WeakMap<z.ZodType, { readonly item: z.ZodType; readonly most: number }>();

/** Returns the item and the maximum length of a schema that `list` made; `undefined` for other schemas. */
export function listOf(schema: z.ZodType): { readonly item: z.ZodType; readonly most: number } | undefined {
  return listShapes.get(schema);
}

/** The checked items of a list, or the error of its first invalid item. */
type CheckedList = { readonly items: readonly unknown[] } | { readonly error: z.ZodError; readonly at: number };

/** The lists of one value that are checked before the value as a whole. */
class CheckedLists {
  readonly #lists = new Map<readonly unknown[], { readonly shape: z.ZodType; readonly checked: CheckedList }>();
  readonly pace: StepCounter = new StepCounter();

  set(values: readonly unknown[], shape: z.ZodType, checked: CheckedList): void {
    this.#lists.set(values, { shape, checked });
  }

  get(values: readonly unknown[], shape: z.ZodType): CheckedList | undefined {
    const found = this.#lists.get(values);
    return found?.shape === shape ? found.checked : undefined;
  }
}

/** The lists of the value that `parseWith` is checking. */
let currentLists: CheckedLists | undefined;

/** As `shape.safeParse(value)`, but `list` schemas use the lists that are already checked. */
function parseWith(lists: CheckedLists, shape: z.ZodType, value: unknown): z.ZodSafeParseResult<unknown> {
  const outer = currentLists;
  currentLists = lists;
  try {
    return shape.safeParse(value);
  } finally {
    currentLists = outer;
  }
}

/** Checks the items of a list. `before`: checks the lists inside an item first. */
function* checkItems(
  lists: CheckedLists,
  item: z.ZodType,
  values: readonly unknown[],
  before: ListChecker = noLists,
): Steps<CheckedList> {
  const items: unknown[] = [];
  for (const [at, value] of values.entries()) {
    const steps = typeof value === "object" && value !== null ? before(value, lists) : undefined;
    if (steps) yield* steps;
    const checked = parseWith(lists, item, value);
    if (!checked.success) return { error: checked.error, at };
    items.push(checked.data);
    if (lists.pace.endsStep()) yield;
  }
  return { items };
}

/**
 * Returns the result of `shape.safeParse(value)`, computed in steps: the lists in the value (those of `list`) are checked item by item
 * before the whole, which then uses their results.
 */
export function* checkedInSteps(shape: z.ZodType, value: unknown): Steps<z.ZodSafeParseResult<unknown>> {
  const lists = new CheckedLists();
  const steps = typeof value === "object" && value !== null ? listChecker(shape)(value, lists) : undefined;
  if (!steps) return shape.safeParse(value);
  yield* steps;
  return parseWith(lists, shape, value);
}

/** Checks the lists in a value, in steps; `undefined` if there are no lists. */
type ListChecker = (value: object, lists: CheckedLists) => Steps<void> | undefined;

const listCheckers = new WeakMap<z.ZodType, ListChecker>();

function listChecker(shape: z.ZodType): ListChecker {
  let checker = listCheckers.get(shape);
  if (!checker) listCheckers.set(shape, (checker = makeListChecker(shape)));
  return checker;
}

const noLists: ListChecker = () => undefined;

function makeListChecker(shape: z.ZodType): ListChecker {
  const listShape = listShapes.get(shape);
  if (listShape) return checkerOfList(shape, listShape.item, listShape.most);
  if (shape instanceof z.ZodOptional || shape instanceof z.ZodNullable) return listChecker(shape.unwrap() as z.ZodType);
  if (shape instanceof z.ZodObject) return checkerOfObject(shape);
  if (shape instanceof z.ZodUnion) return checkerOfUnion(shape);
  return noLists;
}

function checkerOfList(shape: z.ZodType, item: z.ZodType, most: number): ListChecker {
  const inItem = listChecker(item);
  return (value, lists) => {
    // The schema refuses a longer list without reading it.
    if (!Array.isArray(value) || value.length > most) return undefined;
    return (function* () {
      lists.set(value, shape, yield* checkItems(lists, item, value, inItem));
    })();
  };
}

function checkerOfObject({ shape }: z.ZodObject): ListChecker {
  const members = Object.entries(shape).flatMap(([name, member]) => {
    const checker = listChecker(member as z.ZodType);
    return checker === noLists ? [] : [{ name, checker }];
  });
  if (members.length === 0) return noLists;
  return (value, lists) => {
    let all: Steps<void> | undefined;
    for (const { name, checker } of members) {
      const member: unknown = (value as Readonly<Record<string, unknown>>)[name];
      if (typeof member === "object" && member !== null) all = inOrder(all, checker(member, lists));
    }
    return all;
  };
}

function checkerOfUnion({ options, def }: z.ZodUnion): ListChecker {
  const withLists = options.flatMap((option) => {
    const checker = listChecker(option as z.ZodType);
    return checker === noLists ? [] : [{ checker, tags: option._zod.propValues }];
  });
  if (withLists.length === 0) return noLists;
  const { discriminator } = def as { readonly discriminator?: string };
  return (value, lists) => {
    const tag = discriminator === undefined ? undefined : (value as Readonly<Record<string, unknown>>)[discriminator];
    let all: Steps<void> | undefined;
    for (const { checker, tags } of withLists) {
      // With a discriminator, only the matching option parses the value.
      const matches = discriminator === undefined || tags?.[discriminator]?.has(tag as string);
      if (matches) all = inOrder(all, checker(value, lists));
    }
    return all;
  };
}

function inOrder(first: Steps<void> | undefined, second: Steps<void> | undefined): Steps<void> | undefined {
  if (!first || !second) return first ?? second;
  return (function* () {
    yield* first;
    yield* second;
  })();
}
