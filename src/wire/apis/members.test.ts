import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import {
  formDate,
  inWireOrder,
  memberNames,
  memberSince,
  membersOf,
  nested,
  presenceOf,
  serialize,
  variantsOf,
} from "./members.ts";

const block = z.discriminatedUnion("type", [
  z.object({ citations: z.array(z.unknown()).optional(), type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("call"), id: z.string(), input: z.record(z.string(), z.unknown()) }),
]);
const usage = z.object({ input: z.number(), output: z.number().meta({ since: "2025-08" }) });
const message = z.object({ id: z.string(), content: z.array(block), usage: usage.nullable().optional() });

test("members have the order of the schema, at every depth, and unknown members follow", () => {
  const value = {
    usage: { output: 2, total: 3, input: 1 },
    extra: true,
    content: [
      { text: "a", type: "text", citations: [] },
      { b: 1, type: "new", a: 2 },
    ],
    id: "1",
  };
  expect(JSON.stringify(inWireOrder(message, value))).toBe(
    '{"id":"1","content":[{"citations":[],"type":"text","text":"a"},{"b":1,"type":"new","a":2}],"usage":{"input":1,"output":2,"total":3},"extra":true}',
  );
});

test("for every JSON value: ordering changes no value", () => {
  const keys = fc.constantFrom("id", "content", "usage", "type", "text", "input", "__proto__", "constructor", "x");
  const values = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom<unknown>(null, true, 0, "text", "call"),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.array(fc.tuple(keys, tie("value")), { maxLength: 5 }).map((entries) => Object.fromEntries(entries)),
    ),
  })).value;
  const sorted = (value: unknown) =>
    JSON.stringify(value, (_, member: unknown) =>
      typeof member === "object" && member !== null && !Array.isArray(member)
        ? Object.fromEntries(Object.entries(member).toSorted(([a], [b]) => (a < b ? -1 : 1)))
        : member,
    );
  fc.assert(
    fc.property(values, (value) => {
      expect(sorted(inWireOrder(message, value))).toBe(sorted(value));
    }),
  );
});

test("a member's description says whether answers always have it, and since when", () => {
  expect(membersOf(message).map(({ name, always }) => [name, always])).toEqual([
    ["id", true],
    ["content", true],
    ["usage", false],
  ]);
  expect(membersOf(usage).map(({ since }) => since)).toEqual([undefined, "2025-08"]);
});

test("objects inside an object come with their schemas, those of an unknown type not at all", () => {
  const content = [{ type: "call", id: "1", input: {} }, { type: "new" }, "text"];
  expect(nested(message, { usage: { input: 1 }, content })).toEqual([
    { name: "call", object: content[0], schema: variantsOf(block).get("call") },
    { name: "usage", object: { input: 1 }, schema: usage },
  ]);
});

test("a member is in the answers of a profile as often as the schema says", () => {
  const described = z.object({
    id: z.string(),
    note: z.string().optional(),
    tier: z.string().optional().meta({ lean: "never", exact: "always" }),
    timings: z.unknown().optional().meta({ extension: "llama.cpp", lean: "never", exact: "never" }),
  });
  const presence = (profile: "lean" | "exact") => membersOf(described).map((member) => presenceOf(member, profile));
  expect(presence("lean")).toEqual(["always", "sometimes", "never", "never"]);
  expect(presence("exact")).toEqual(["always", "sometimes", "always", "never"]);
  expect(memberNames(described)).toEqual(["id", "note", "tier"]);
});

test("serialize writes the members in the order of the schema", () => {
  expect(serialize(usage, { extra: 1, output: 2, input: 3 })).toBe('{"input":3,"output":2,"extra":1}');
});

test("the date of a form is that of its newest member, at every depth; a value of an older feature proves no date", () => {
  const dated = z.object({
    a: z.number().meta({ since: "2025-01" }),
    usage: usage.optional(),
    box: z.object({}).nullable().meta({ since: "2026-09-15", proof: "null" }),
  });
  expect(formDate(dated, {})).toBe("");
  expect(formDate(dated, { a: 1 })).toBe("2025-01");
  expect(formDate(dated, { a: 1, usage: { input: 1, output: 1 } })).toBe("2025-08");
  expect(formDate(dated, { a: 1, box: {} })).toBe("2025-01");
  expect(formDate(dated, { box: null, a: 1 })).toBe("2026-09-15");
  expect([memberSince(dated, "box"), memberSince(dated, "usage")]).toEqual([Date.UTC(2026, 8, 15) / 1000, 0]);
});

test("floats are printed where the schema says so, in lists and records too", () => {
  const float = z.number().meta({ float: true });
  const schema = z.object({ list: z.array(float), record: z.record(z.string(), float), count: z.number() });
  const value = { count: 1, record: { b: 1, a: 2 }, list: [1] };
  expect(JSON.stringify(inWireOrder(schema, value, (number) => number.toFixed(1)))).toBe(
    '{"list":["1.0"],"record":{"b":"1.0","a":"2.0"},"count":1}',
  );
});
