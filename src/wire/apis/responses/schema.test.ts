import { expect, test } from "vitest";
import * as z from "zod";
import { membersOf, nested } from "../members.ts";
import * as schemas from "./schema.ts";

const objects = Object.entries<unknown>(schemas).flatMap(([name, value]) => {
  if (value instanceof z.ZodObject) return [[name, value] as const];
  if (!(value instanceof Map)) return [];
  return [...(value as ReadonlyMap<unknown, z.ZodObject>)].map(([type, schema]) => [String(type), schema] as const);
});

test.each(objects)("%s lists its members in OpenAI's order", (_, schema) => {
  const names = membersOf(schema).map(({ name }) => name);
  expect(names).toEqual(schema === schemas.response ? schemas.wireOrder(names, true) : schemas.wireOrder(names));
});

test("the items of a response are found by their type, those of other types are not described", () => {
  const output = [{ type: "message" }, { type: "web_search_call" }, { type: "reasoning" }];
  expect(nested(schemas.response, { output }).map(({ name }) => name)).toEqual(["message", "reasoning"]);
});
