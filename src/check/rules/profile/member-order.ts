import type * as z from "zod";
import { isOpen, membersOf, nested } from "../../../apis/members.ts";
import type { Json } from "../view.ts";

/**
 * What is wrong with an object's members; undefined when nothing is. `wanted`: their names in order, those that may be absent with a
 * `?` behind. `further`: others may stand among them.
 */
export function membersOffence(object: Json, wanted: readonly string[], further: boolean): string | undefined {
  const names = wanted.map((name) => name.replace("?", ""));
  const missing = wanted.find((name) => !name.endsWith("?") && !(name in object));
  if (missing !== undefined) return `no ${missing}`;
  const keys = Object.keys(object);
  const foreign = keys.find((key) => !names.includes(key));
  if (!further && foreign !== undefined) return `the member ${foreign}`;
  const known = keys.filter((key) => names.includes(key));
  const due = names.filter((name) => name in object);
  return known.join() === due.join() ? undefined : `the order ${known.join(", ")}`;
}

/**
 * Compares the members of `object`, and of the objects inside it, with the vendor's current answers: none missing, none added (unless
 * `further`), and all in the order of the wire. Returns the first difference, or `undefined`.
 */
export function memberDifference(schema: z.ZodObject, object: Json, further: boolean): string | undefined {
  const wanted = membersOf(schema).map(({ name, always }) => (always ? name : `${name}?`));
  const own = membersOffence(object, wanted, further || isOpen(schema));
  if (own !== undefined) return own;
  for (const { name, object: inner, schema: described } of nested(schema, object)) {
    const found = memberDifference(described, inner, further);
    if (found !== undefined) return `${name} with ${found}`;
  }
  return undefined;
}
