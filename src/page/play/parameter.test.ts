import { expect, test } from "vitest";
import { defaultInWords, defaultOf, kindOf, matching, sorted, valueOf } from "./parameter.ts";
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

test("a search finds names and notes by each of its words", () => {
  const table = [parameter({ name: "top_k" }), parameter({ name: "stop", note: "Ends the answer." })];
  const found = (search: string): string[] => matching(table, search).map(({ name }) => name);
  expect(found("TOP")).toEqual(["top_k", "stop"]);
  expect(found("answer  ends")).toEqual(["stop"]);
  expect(found("none")).toEqual([]);
});

test("a default is shown with its origin, also under another name of the parameter", () => {
  const defaults = new Map([
    ["temperature", { value: 0.7, origin: "configuration" }],
    ["max_completion_tokens", { value: 50, origin: "toString" }],
  ]);
  const words = (name: string): string | undefined => {
    const known = defaultOf(parameter({ name }), defaults);
    return known && defaultInWords(known);
  };
  expect(words("temperature")).toBe("0.7, set in the configuration");
  // An origin of another version is left out.
  expect(words("max_tokens")).toBe("50");
  expect(words("top_p")).toBeUndefined();
});
