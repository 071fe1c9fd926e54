import { z } from "zod";
import { isObject } from "../../generation/json.ts";

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

/**
 * A list of at most `most` items. The first item that is wrong ends the reading: zod's own arrays keep a finding for each of a million
 * wrong items, which costs gigabytes. `phrase` as in `expecting`.
 */
export function list<T>(
  item: z.ZodType<T>,
  { phrase, least = 0, most }: { readonly phrase?: string; readonly least?: number; readonly most: number },
): z.ZodType<T[]> {
  return z.unknown().transform((value: unknown, { issues }): T[] => {
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
    const items: T[] = [];
    for (let at = 0; at < value.length; at++) {
      const checked = item.safeParse(value[at]);
      if (!checked.success) {
        const [first] = checked.error.issues;
        return refuse({ code: "custom", ...first, path: [at, ...(first?.path ?? [])], input: value[at] });
      }
      items.push(checked.data);
    }
    return items;
  });
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
