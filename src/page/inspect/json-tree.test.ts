import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber, jsonIn, jsonText, parseJson } from "../parts/json-text.ts";
import { findInJson, JsonRows, parsePath, pathOf, pathText } from "./json-tree.ts";
import type { JsonPath } from "./json-tree.ts";

const json = fc.jsonValue({ maxDepth: 4 });

function valueAt(root: unknown, path: JsonPath): unknown {
  return path.reduce<unknown>((value, key) => (value as Record<string | number, unknown>)[key], root);
}

/** Every value with its path, in the order of the rows. */
function everyValue(value: unknown, path: JsonPath = []): (readonly [JsonPath, unknown])[] {
  if (typeof value !== "object" || value === null) return [[path, value]];
  const entries = Array.isArray(value) ? value.map((item, at) => [at, item] as const) : Object.entries(value);
  return [[path, value], ...entries.flatMap(([key, item]) => everyValue(item, [...path, key]))];
}

test("a tree that is opened has each value once, in order, at its path", () => {
  fc.assert(
    fc.property(json, (root) => {
      const rows = new JsonRows(root);
      const [first] = rows.all;
      if (first) rows.openAll(first);
      const values = rows.all.filter(({ isLine }) => isLine !== true);
      expect(values.map((row) => [pathOf(row), row.value])).toEqual(everyValue(root));
      rows.closeAll();
      const kept = rows.all.filter(({ isLine }) => isLine !== true);
      expect(kept.every(({ depth }) => depth <= 1)).toBe(true);
    }),
  );
});

test("folding is undone by unfolding, and a path is revealed wherever it is", () => {
  fc.assert(
    fc.property(json, fc.array(fc.nat()), (root, folds) => {
      const rows = new JsonRows(root);
      for (const fold of folds) {
        const row = rows.all[fold % rows.all.length];
        if (!row) continue;
        const before = [...rows.all];
        const wasOpen = row.isOpen;
        rows.toggle(row);
        if (!wasOpen) {
          rows.toggle(row);
          expect([...rows.all]).toEqual(before);
          rows.toggle(row);
        }
      }
      for (const [path, value] of everyValue(root)) {
        const row = rows.reveal(path);
        expect(row && rows.all.includes(row) && pathOf(row)).toEqual(path);
        expect(row?.value).toEqual(value);
      }
    }),
  );
});

test("the search finds exactly the values whose name or text contains the words", () => {
  fc.assert(
    fc.property(json, fc.string({ minLength: 1, maxLength: 2 }), (root, query) => {
      const contains = (text: string): boolean => text.toLowerCase().includes(query.toLowerCase());
      const expected = everyValue(root).filter(([path, value]) => {
        const key = path.at(-1);
        if (typeof key === "string" && contains(key)) return true;
        if (typeof value === "object" && value !== null) return false;
        return contains(typeof value === "string" ? value : JSON.stringify(value));
      });
      const found = [...findInJson(root, query)].filter((path) => path !== undefined);
      expect(found).toEqual(expected.map(([path]) => path));
    }),
  );
});

test("a path is read as it is written", () => {
  const key = fc.oneof(fc.nat(1000), fc.string({ minLength: 1 }));
  fc.assert(
    fc.property(fc.array(key), (path) => {
      // A name of digits alone is the same as an index only where the text has no brackets.
      expect(parsePath(pathText(path))).toEqual(path);
    }),
  );
  expect(pathText(["messages", 1, "content", 0, "cache control"])).toBe('messages[1].content[0]["cache control"]');
});

// JSON.parse reads 12345678901234567890 as 12345678901234567000: the tree showed a seed that nobody had sent.
test("numbers keep all their digits", () => {
  const root = parseJson('{"seed":12345678901234567890,"small":1,"large":1e400}');
  expect(valueAt(root, ["seed"])).toEqual(new ExactNumber("12345678901234567890"));
  expect(jsonText(root)).toBe('{\n  "seed": 12345678901234567890,\n  "small": 1,\n  "large": 1e400\n}');
});

test("a long text opens in lines, which together are the text", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 101, maxLength: 2000, unit: "binary" }), (text) => {
      const rows = new JsonRows({ text });
      const row = rows.reveal(["text"]);
      if (row) rows.open(row);
      const lines = rows.all.filter(({ isLine }) => isLine === true).map(({ value }) => String(value));
      expect(lines.join("").length).toBe(text.replaceAll("\n", "").length);
      expect(lines.join("")).toBe(text.replaceAll("\n", ""));
    }),
  );
});

test("a stream of events and NDJSON are lists of their values", () => {
  expect(jsonIn('event: a\ndata: {"a":1}\n\ndata: {"b":2}\r\n\r\ndata: [DONE]\n\n')).toEqual([{ a: 1 }, { b: 2 }]);
  expect(jsonIn('{"a":1}\n{"b":2}\n')).toEqual([{ a: 1 }, { b: 2 }]);
  expect(jsonIn("no JSON")).toBeUndefined();
});

test("a document that is nested deeper than the stack is searched", () => {
  const depth = 20_000;
  const root = parseJson(`${"[".repeat(depth)}"needle"${"]".repeat(depth)}`);
  const found = [...findInJson(root, "needle")].filter((path) => path !== undefined);
  expect(found.map(({ length }) => length)).toEqual([depth]);
});
