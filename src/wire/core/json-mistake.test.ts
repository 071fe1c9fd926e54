import * as fc from "fast-check";
import { expect, test } from "vitest";
import { runSync } from "./steps.ts";
import { findJsonMistake } from "./json-mistake.ts";

const find = (text: string): string | undefined => runSync(findJsonMistake(new TextEncoder().encode(text)))?.text;

test.each([
  ["", "line 1, column 1: expected a value, found the end of the body"],
  ['{"model":"demo",', "line 1, column 17: expected a name in double quotes, found the end of the body"],
  ['{"model":"demo",}', "line 1, column 17: expected a name in double quotes, found }"],
  ['{"a":[1,2,]}', "line 1, column 11: expected a value, found ]"],
  ["{'model':1}", "line 1, column 2: expected a name in double quotes or }, found '"],
  ["{model:demo}", "line 1, column 2: expected a name in double quotes or }, found m"],
  ['{"a" 1}', "line 1, column 6: expected a colon, found 1"],
  ['{\n  "ä€😀": "x"\n  "b": 1}', 'line 3, column 3: expected a comma or }, found "'],
  ["[1 2]", "line 1, column 4: expected a comma or ], found 2"],
  ["[1}", "line 1, column 3: expected a comma or ], found }"],
  ['{"a":True}', "line 1, column 6: expected a value, found T"],
  ['{"a":01}', "line 1, column 6: expected a value, found 0"],
  ['{"ä":😀}', "line 1, column 6: expected a value, found 😀"],
  ["{}x", "line 1, column 3: expected the end of the body, found x"],
  ['"abc', "line 1, column 5: expected the closing double quote of a string, found the end of the body"],
  ['"a\nb"', "line 1, column 3: expected an escape, such as \\n, in place of a control character, found U+000A"],
  ['"\\x"', 'line 1, column 3: expected one of " \\ / b f n r t u after \\, found x'],
  ['"\\u12g4"', "line 1, column 6: expected four hexadecimal digits after \\u, found g"],
  ["{}\0", "line 1, column 3: expected the end of the body, found U+0000"],
  ["\u00a0{}", "line 1, column 1: expected a value, found U+00A0"],
])("%j: %s", (text, mistake) => {
  expect(find(text)).toBe(mistake);
});

test("it finds a mistake in exactly the texts that JSON.parse refuses", () => {
  const insertion = fc.constantFrom(..."[]{},:\"\\'u1-+.e0 \n\ttnf", "true", '"a"', "\\u00e4", "\0");
  const edit = fc.record({ at: fc.nat(), remove: fc.nat(2), insert: fc.oneof(fc.constant(""), insertion) });
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.array(edit, { maxLength: 3 }), (json, edits) => {
      const text = edits.reduce((before, { at, remove, insert }) => {
        const start = at % (before.length + 1);
        return before.slice(0, start) + insert + before.slice(start + remove);
      }, json);
      // A half of a pair is not UTF-8.
      fc.pre(!/\p{Surrogate}/u.test(text));
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      expect([text, find(text) === undefined]).toEqual([text, isJson]);
    }),
    { numRuns: 3000 },
  );
});

test("a long text is searched in steps", () => {
  const text = `[${'"abc",\n'.repeat(50_000)}`;
  const task = findJsonMistake(new TextEncoder().encode(text));
  let steps = 0;
  let step = task.next();
  for (; step.done !== true; step = task.next()) steps++;
  expect(step.value?.text).toBe("line 50001, column 1: expected a value, found the end of the body");
  expect(steps).toBeGreaterThan(5);
});
