import { expect, test } from "vitest";
import { placeOfPath } from "./json-place.ts";

const text =
  '{ "choices" : [ {"index":0, "delta":{"tool_calls":[{"id":"a\\"}","function":{}} , {"index":1}]}} ], "n": -1.5e3 }';

test.each([
  [["choices"], '"choices"'],
  [["choices", 0, "index"], '"index"'],
  // A missing member: its object, and not the first member of that name.
  [["choices", 0, "delta", "tool_calls", 0, "index"], '{"id":"a\\"}","function":{}}'],
  [["choices", 0, "delta", "tool_calls", 1], '{"index":1}'],
  [["n"], '"n"'],
  [["n", "more"], "-1.5e3"],
  [["none"], text],
  [[], text],
])("%j", (path, expected) => {
  const { start, end } = placeOfPath(text, path);
  expect(text.slice(start, end)).toBe(expected);
});

test("the last of two members with one name, as JSON.parse reads them", () => {
  const twice = '{"a":1,"a":{"b":2}}';
  expect(placeOfPath(twice, ["a"]).start).toBe(twice.lastIndexOf('"a"'));
  expect(placeOfPath(twice, ["a", "b"]).start).toBe(twice.indexOf('"b"'));
});
