import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ruleList } from "../../src/judge/check/report/terminal.ts";
import { everyRule } from "../../src/judge/check/rules/every-rule.ts";

// The page is generated: `truewire check --list > docs/rules.md`.
test("docs/rules.md is what truewire check --list prints", () => {
  expect(readFileSync(new URL("../../docs/rules.md", import.meta.url), "utf8")).toBe(ruleList());
});

test("every rule has an id of its own, and an error or a warning says who breaks", () => {
  const ids = everyRule.map((rule) => rule.id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.length).toBeGreaterThanOrEqual(80);
  expect(
    everyRule.filter((rule) => rule.severity !== "note" && rule.breaks.length === 0).map((rule) => rule.id),
  ).toEqual([]);
});

test("a rule's source is one that its reader can look up", () => {
  // The page says what a specification, a documentation and a recording are; the others name an issue, a standard, or a program's source code.
  const open =
    /specification|(?:Anthropic|OpenAI|Google)'s documentation|OpenAPI|HTML standard|RFC \d|OWASP|recorded|recordings|#\d|source code|official SDKs/;
  const hidden = everyRule.filter(({ source }) => !open.test(source) || /wire\.md|lessons|requirement/.test(source));
  expect(hidden.map(({ id, source }) => `${id}: ${source}`)).toEqual([]);
});
