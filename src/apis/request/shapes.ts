import { z } from "zod";
import { isObject } from "../../core/json.ts";
import { atOnce, Pace } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";

/**
 * The shapes that request parameters are made of. Their `error` messages are not for readers: they tell `issueFailure` how OpenAI
 * names what it expected, which zod's issues alone do not say.
 */

/** What stands in "expected …" when the type is wrong. */
export function expecting(phrase: string): { error: (issue: { readonly code?: string }) => string | undefined } {
  return { error: ({ code }) => (code === "invalid_type" || code === "invalid_union" ? phrase : undefined) };
}

/** Marks a range as one of integers; without it, numbers are told as decimals. */
export const integerMark = "integer";

export function integer(minimum?: number, maximum?: number): z.ZodType<number> {
  let shape = z.int(expecting("an integer"));
  if (minimum !== undefined) shape = shape.min(minimum, integerMark);
  if (maximum !== undefined) shape = shape.max(maximum, integerMark);
  return shape;
}

/** An integer that may be too large for a JavaScript number to hold exactly, such as a 64-bit seed. */
export function wideInteger(): z.ZodType<number> {
  return z.number(expecting("an integer")).refine(Number.isInteger, { params: { expected: "an integer" } });
}

export function decimal(minimum?: number, maximum?: number): z.ZodType<number> {
  let shape = z.number();
  if (minimum !== undefined) shape = shape.min(minimum);
  if (maximum !== undefined) shape = shape.max(maximum);
  return shape;
}

interface ListShape {
  readonly item: z.ZodType;
  readonly most: number;
}

/** Its items; or what is wrong with the first one that is, and its place. */
type CheckedList = { readonly items: readonly unknown[] } | { readonly failed: z.ZodError; readonly at: number };

/** What the lists of one value were found to be, before the whole of it is checked. */
class FoundLists {
  readonly #found = new Map<readonly unknown[], { readonly shape: z.ZodType; readonly checked: CheckedList }>();
  readonly pace: Pace = new Pace();

  set(values: readonly unknown[], shape: z.ZodType, checked: CheckedList): void {
    this.#found.set(values, { shape, checked });
  }

  /** undefined: it is not known. */
  get(values: readonly unknown[], shape: z.ZodType): CheckedList | undefined {
    const found = this.#found.get(values);
    return found?.shape === shape ? found.checked : undefined;
  }
}

const lists = new WeakMap<z.ZodType, ListShape>();
/** Of the value that is being checked just now. */
let found: FoundLists | undefined;

/** What a shape that `list` has made is a list of; undefined: it is none. */
function listOf(shape: z.ZodType): ListShape | undefined {
  return lists.get(shape);
}

/** What `safeParse` says of a value, whose lists are not looked at again where that is known of them. */
function checkedWith(known: FoundLists, shape: z.ZodType, value: unknown): z.ZodSafeParseResult<unknown> {
  const outer = found;
  found = known;
  try {
    return shape.safeParse(value);
  } finally {
    found = outer;
  }
}

/** Checks the items of a list before its shape does. `before`: what is checked of an item first. */
function* checkList(
  known: FoundLists,
  shape: z.ZodType,
  values: readonly unknown[],
  before?: (value: object) => Steps<void> | undefined,
): Steps<void> {
  const { item, most } = lists.get(shape) ?? { most: 0 };
  // A longer one is refused unread.
  if (item && values.length <= most) known.set(values, shape, yield* checkedItems(known, item, values, before));
}

function* checkedItems(
  known: FoundLists,
  item: z.ZodType,
  values: readonly unknown[],
  before?: (value: object) => Steps<void> | undefined,
): Steps<CheckedList> {
  const items: unknown[] = [];
  for (const [at, value] of values.entries()) {
    const first = before && typeof value === "object" && value !== null ? before(value) : undefined;
    if (first) yield* first;
    const checked = checkedWith(known, item, value);
    if (!checked.success) return { failed: checked.error, at };
    items.push(checked.data);
    if (known.pace.isOver()) yield;
  }
  return { items };
}

/**
 * A list of at most `most` items. The first item that is wrong ends the reading: zod's own arrays keep a finding for each of a million
 * wrong items, which costs gigabytes. `phrase` as in `expecting`.
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
    const known = found ?? new FoundLists();
    const checked = known.get(value, shape) ?? atOnce(checkedItems(known, item, value));
    // The item's shape has made them.
    if ("items" in checked) return checked.items as T[];
    const { failed, at } = checked;
    const [first] = failed.issues;
    return refuse({ code: "custom", ...first, path: [at, ...(first?.path ?? [])], input: value[at] });
  });
  lists.set(shape, { item, most });
  return shape;
}

export function strings(most: number, least = 0): z.ZodType<string[]> {
  return list(z.string(), { phrase: "an array of strings", least, most });
}

/** A string, or an array of them: `stop`, `dry_sequence_breakers`. */
export function stringOrStrings(most: number): z.ZodType<string | string[]> {
  return z.union([z.string(), strings(most)], expecting("one of a string or array of strings"));
}

/** Any JSON object, as it came: what is in it is judged by who uses it. */
export function anyObject(): z.ZodType<Record<string, unknown>> {
  return z.unknown().transform((value: unknown, { issues }): Record<string, unknown> => {
    if (isObject(value)) return value as Record<string, unknown>;
    issues.push({ code: "invalid_type", expected: "object", input: value, message: "an object" });
    return z.NEVER;
  });
}

/**
 * What `shape.safeParse` says of a value, found in steps: the lists in it (those that `list` makes) are checked before the whole, item by
 * item, and what was found of them is not looked for again.
 */
export function* checkedInSteps(shape: z.ZodType, value: unknown): Steps<z.ZodSafeParseResult<unknown>> {
  const known = new FoundLists();
  const lists = typeof value === "object" && value !== null ? wayInto(shape)(value, known) : undefined;
  if (!lists) return shape.safeParse(value);
  yield* lists;
  return checkedWith(known, shape, value);
}

/** What is to be done to check the lists in a value; undefined: there are none. */
type Way = (value: object, known: FoundLists) => Steps<void> | undefined;

const ways = new WeakMap<z.ZodType, Way>();

function wayInto(shape: z.ZodType): Way {
  let way = ways.get(shape);
  if (!way) ways.set(shape, (way = makeWay(shape)));
  return way;
}

/** There is no list in it. */
const nowhere: Way = () => undefined;

function makeWay(shape: z.ZodType): Way {
  const list = listOf(shape);
  if (list) return wayOfList(shape, wayInto(list.item));
  if (shape instanceof z.ZodOptional || shape instanceof z.ZodNullable) return wayInto(shape.unwrap() as z.ZodType);
  if (shape instanceof z.ZodObject) return wayOfObject(shape);
  if (shape instanceof z.ZodUnion) return wayOfUnion(shape);
  return nowhere;
}

function wayOfList(shape: z.ZodType, within: Way): Way {
  return (value, known) => {
    if (!Array.isArray(value)) return undefined;
    return checkList(known, shape, value, within === nowhere ? undefined : (one) => within(one, known));
  };
}

function wayOfObject({ shape }: z.ZodObject): Way {
  const members = Object.entries(shape).flatMap(([name, member]) => {
    const way = wayInto(member as z.ZodType);
    return way === nowhere ? [] : [{ name, way }];
  });
  if (members.length === 0) return nowhere;
  return (value, known) => {
    let all: Steps<void> | undefined;
    for (const { name, way } of members) {
      const member: unknown = (value as Readonly<Record<string, unknown>>)[name];
      if (typeof member === "object" && member !== null) all = both(all, way(member, known));
    }
    return all;
  };
}

function wayOfUnion({ options, def }: z.ZodUnion): Way {
  const own = options.flatMap((option) => {
    const way = wayInto(option as z.ZodType);
    return way === nowhere ? [] : [{ way, tags: option._zod.propValues }];
  });
  if (own.length === 0) return nowhere;
  const { discriminator } = def as { readonly discriminator?: string };
  return (value, known) => {
    const tag = discriminator === undefined ? undefined : (value as Readonly<Record<string, unknown>>)[discriminator];
    let all: Steps<void> | undefined;
    for (const { way, tags } of own) {
      // Only one option reads it, and what another one would find in it is nothing to anybody.
      const reads = discriminator === undefined || tags?.[discriminator]?.has(tag as string);
      if (reads) all = both(all, way(value, known));
    }
    return all;
  };
}

function both(first: Steps<void> | undefined, second: Steps<void> | undefined): Steps<void> | undefined {
  return first && second ? inOrder(first, second) : (first ?? second);
}

function* inOrder(first: Steps<void>, second: Steps<void>): Steps<void> {
  yield* first;
  yield* second;
}
