import { expect, test } from "vitest";
import { languageNames } from "./highlight-aside.ts";
import { runsOf } from "./highlighting.ts";

test("runs have the length of the code, and entities count as one character", () => {
  const code = 'const a = "<b>&amp;"; // it\'s\n`${a < 1}`\n';
  const runs = runsOf(code, "javascript");
  expect(runs.reduce((sum, [, length]) => sum + length, 0)).toBe(code.length);
  let at = 0;
  const parts = runs.map(([scope, length]) => [scope, code.slice(at, (at += length))]);
  expect(parts).toContainEqual(["keyword", "const"]);
  expect(parts).toContainEqual(["string", '"<b>&amp;"']);
  expect(parts).toContainEqual(["comment", "// it's"]);
  // In a template, the code inside has its own scopes.
  expect(parts).toContainEqual(["number", "1"]);
});

test.each([...new Set(languageNames.values())])("the worker knows %s", (language) => {
  const code = "<a> & 'b' \"c\"\n# d\n";
  expect(runsOf(code, language).reduce((sum, [, length]) => sum + length, 0)).toBe(code.length);
});
