import { z } from "zod";
import type { Steps } from "../../core/steps.ts";
import { checkedWith, checkList, FoundLists, listOf } from "./shapes.ts";

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
