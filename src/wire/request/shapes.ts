import { z } from "zod";

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

export function strings(): z.ZodArray<z.ZodString> {
  return z.array(z.string(), expecting("an array of strings"));
}

/** A string, or an array of them: `stop`, `dry_sequence_breakers`. */
export function stringOrStrings(): z.ZodType<string | string[]> {
  return z.union([z.string(), strings()], expecting("one of a string or array of strings"));
}

/** Any JSON object; what is in it is judged by who uses it. */
export function anyObject(): z.ZodType<Record<string, unknown>> {
  return z.record(z.string(), z.unknown(), expecting("an object"));
}
