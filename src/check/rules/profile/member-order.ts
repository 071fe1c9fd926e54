import type * as z from "zod";
import { isOpen, membersOf, nested, presenceOf } from "../../../apis/members.ts";
import type { Presence } from "../../../apis/members.ts";
import type { Json } from "../view.ts";
import type { ProfileName } from "./profile-rule.ts";

/**
 * Compares the members of an object with `expected`: the names in order, with a `?` after those that may be absent. `further`: other members
 * are allowed. Returns the first difference, or `undefined`.
 */
export function memberViolation(object: Json, expected: readonly string[], further: boolean): string | undefined {
  const names = expected.map((name) => name.replace("?", ""));
  const missing = expected.find((name) => !name.endsWith("?") && !(name in object));
  if (missing !== undefined) return `no ${missing}`;
  const keys = Object.keys(object);
  const unknown = keys.find((key) => !names.includes(key));
  if (!further && unknown !== undefined) return `the member ${unknown}`;
  const found = keys.filter((key) => names.includes(key));
  const inOrder = names.filter((name) => name in object);
  return found.join() === inOrder.join() ? undefined : `the order ${found.join(", ")}`;
}

/**
 * Returns the members that an object has in a profile, in the form and order that `membersOffence` expects. `presence`: members for which
 * the exchange decides, not the schema.
 */
export function expectedMembers(
  schema: z.ZodObject,
  profile: ProfileName,
  presence: Readonly<Record<string, Presence>> = {},
): readonly string[] {
  return membersOf(schema).flatMap((member) => {
    const often = presence[member.name] ?? presenceOf(member, profile);
    return often === "never" ? [] : [often === "always" ? member.name : `${member.name}?`];
  });
}

/**
 * Compares the members of `object`, and of the objects inside it, with the vendor's current answers: none missing, none added (unless
 * `further`), and all in the order of the wire. Returns the first difference, or `undefined`.
 */
export function memberDifference(schema: z.ZodObject, object: Json, further: boolean): string | undefined {
  const expected = membersOf(schema).map(({ name, always }) => (always ? name : `${name}?`));
  const own = memberViolation(object, expected, further || isOpen(schema));
  if (own !== undefined) return own;
  for (const { name, object: inner, schema: described } of nested(schema, object)) {
    const found = memberDifference(described, inner, further);
    if (found !== undefined) return `${name} with ${found}`;
  }
  return undefined;
}
