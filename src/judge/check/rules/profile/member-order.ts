import type * as z from "zod";
import { chatChunk, chatCompletion } from "../../../../wire/apis/chat/schema.ts";
import { formDate, isOpen, membersOf, nested, presenceOf, variantsOf } from "../../../../wire/apis/members.ts";
import type { EarlierOrder, Presence } from "../../../../wire/apis/members.ts";
import { message, streamEvent } from "../../../../wire/apis/messages/schema.ts";
import { response } from "../../../../wire/apis/responses/schema.ts";
import { responseEvents } from "../../../../wire/apis/responses/event-schema.ts";
import { isObject } from "../../../../wire/core/json.ts";
import type { Exchange } from "../exchange.ts";
import type { BodyView, Json, StreamView } from "../view.ts";
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
 * Returns the members that an object has in a profile, in the form and order that `memberViolation` expects. `presence`: members for which
 * the exchange decides, not the schema. `date`: the date of the answer's form (`formDate`); members that are newer may be absent.
 */
export function expectedMembers(
  schema: z.ZodObject,
  profile: ProfileName,
  presence: Readonly<Record<string, Presence>> = {},
  date = today,
): readonly string[] {
  return membersOf(schema).flatMap((member) => {
    const often = presence[member.name] ?? presenceOf(member, profile);
    const isDue = often === "always" && (member.since ?? "") <= date;
    return often === "never" ? [] : [isDue ? member.name : `${member.name}?`];
  });
}

/** Later than the date of every form. */
const today = "9999";

/** The objects of answers, by endpoint: the body, and the events of a stream by their type. */
const answerSchemas: Partial<
  Readonly<
    Record<Exchange["endpoint"], readonly [body: z.ZodObject, event: (type: unknown) => z.ZodObject | undefined]>
  >
> = {
  chat: [chatCompletion, () => chatChunk],
  responses: [response, (type) => responseEvents.get(type)],
  messages: [message, (type) => variantsOf(streamEvent).get(type)],
};

/** Returns the date of an answer's form: that of its newest dated member, whichever event has it (`formDate`). "" without one. */
export function answerDate(view: StreamView | BodyView): string {
  const [body, event] = answerSchemas[view.exchange.endpoint] ?? [];
  const dates =
    "chunks" in view ? view.chunks.map(({ value }) => dateIn(event?.(value.type), value)) : [dateIn(body, view.value)];
  return dates.reduce((newest, date) => (date > newest ? date : newest), "");
}

function dateIn(schema: z.ZodObject | undefined, value: unknown): string {
  return schema && isObject(value) ? formDate(schema, value) : "";
}

/**
 * Compares the members of `object`, and of the objects inside it, with the vendor's answers of `date` (`formDate`): none missing, none
 * added (except in `lean`), and all in the order of the wire. Returns the first difference, or `undefined`.
 */
export function memberDifference(
  schema: z.ZodObject,
  object: Json,
  profile: ProfileName,
  date: string,
): string | undefined {
  const expected = expectedMembers(schema, profile, {}, profile === "lean" ? today : date);
  const further = profile === "lean" || isOpen(schema);
  const own = memberViolation(object, expected, further);
  if (own !== undefined && memberViolation(object, orderBefore(schema, expected, date), further) !== undefined)
    return own;
  for (const { name, object: inner, schema: described } of nested(schema, object)) {
    const found = memberDifference(described, inner, profile, date);
    if (found !== undefined) return `${name} with ${found}`;
  }
  return undefined;
}

/** The same members in the order that the object had until a date, where its schema notes one (`.meta({ firstUntil })`). */
function orderBefore(schema: z.ZodObject, expected: readonly string[], date: string): readonly string[] {
  const earlier = schema.meta()?.["firstUntil"] as EarlierOrder | undefined;
  if (earlier === undefined || date > earlier.date) return expected;
  return [...earlier.names, ...expected.filter((name) => !earlier.names.includes(name))];
}
