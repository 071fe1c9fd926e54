import { expect, test } from "vitest";
import { kindOf, sorted, valueOf } from "./parameter.ts";
import type { Parameter } from "./parameter.ts";

const parameter = (more: Partial<Parameter>): Parameter => ({
  name: "p",
  treatment: "honoured",
  origin: "openai",
  note: "",
  ...more,
});

test.each([
  [{ type: "number" }, " 0.5 ", 0.5],
  [{ type: "integer" }, "7", 7],
  [{ type: "boolean" }, "false", false],
  [{ type: "string", values: ["low", "high"] }, "low", "low"],
  [{ type: "string" }, " as it is ", " as it is "],
  [{}, '{"a": 1}', { a: 1 }],
  [{}, '["a", "b"]', ["a", "b"]],
  [{}, "END", "END"],
  [{}, "  ", undefined],
  [{ type: "number" }, "", undefined],
])("%j: %j is %j", (more, text, value) => {
  expect(valueOf(parameter(more), text)).toEqual(value);
});

test.each([
  [{ type: "number" }, "many", "p is not a number: many"],
  [{}, '{"a": ', "p is no valid JSON"],
])("%j: %j is refused in words", (more, text, words) => {
  expect(() => valueOf(parameter(more), text)).toThrow(words);
});

test("a value is entered by its type", () => {
  expect(
    [{ type: "boolean" }, { type: "integer" }, { type: "string" }, {}].map((more) => kindOf(parameter(more))),
  ).toEqual(["choice", "number", "text", "json"]);
});

test("parameters without effect, and those with a place of their own, are not among the others", () => {
  const table = [
    parameter({ name: "seed" }),
    parameter({ name: "temperature" }),
    parameter({ name: "tools" }),
    parameter({ name: "user", treatment: "accepted" }),
    parameter({ name: "xtc" }),
  ];
  const { common, others } = sorted(table);
  expect(common.map(({ name }) => name)).toEqual(["temperature", "seed"]);
  expect(others.map(({ name }) => name)).toEqual(["xtc"]);
});
