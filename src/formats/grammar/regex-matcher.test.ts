import * as fc from "fast-check";
import { expect, test } from "vitest";
import { RegexMatcher } from "./regex-matcher.ts";
import { RegexError } from "./regex-syntax.ts";

const patterns = [
  "",
  "^$",
  "a",
  "^a+$",
  "^(a|ab)(c|bcd)$",
  "b?a{2,3}",
  "^(a?b?){2,5}$",
  "^a*?b",
  "(^|b)a(b|$)",
  "^[^ab]$",
  "^[a-c]{1,40}$",
  "^.$",
  "\\d{2}|\\w\\s",
  "^(?:a|b)*c?$",
  "^(a*)*$",
  "x|^",
  "^\\u{1f600}$",
];

test("it tells what the runtime tells, for every pattern and text", () => {
  const pattern = fc.constantFrom(...patterns);
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c", "d", "1", " ", "\n", "é", "😀"), maxLength: 12 });
  fc.assert(
    fc.property(pattern, text, (source, value) => {
      expect(new RegexMatcher(source).test(value)).toBe(new RegExp(source, "u").test(value));
    }),
    { numRuns: 3000 },
  );
});

const atom = fc.constantFrom("a", "b", "[ab]", ".", "^", "$", "c");
const { node } = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    atom,
    fc.tuple(tie("node"), tie("node")).map(([a, b]) => a + b),
    fc.tuple(tie("node"), tie("node")).map(([a, b]) => `(${a}|${b})`),
    fc
      .tuple(tie("node"), fc.constantFrom("*", "+", "?", "{0,2}", "{2}", "{1,}"))
      .map(([a, quantifier]) => `(?:${a})${quantifier}`),
  ),
}));

test("it tells what the runtime tells, for random patterns", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 7 });
  fc.assert(
    fc.property(node, text, (source, value) => {
      expect(new RegexMatcher(source).test(value)).toBe(new RegExp(source, "u").test(value));
    }),
    { numRuns: 3000 },
  );
});

// `^(a+)+$` held the runtime's engine for 34 seconds over thirty characters.
test.each(["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^(.*a){20}$"])("%s is decided in time", (source) => {
  const text = `${"a".repeat(50_000)}!`;
  const started = performance.now();
  expect(new RegexMatcher(source).test(text)).toBe(false);
  expect(performance.now() - started).toBeLessThan(2000);
});

test.each(["(?=a)b", "(a)\\1", "\\bword\\b", "(", "((a{1000}){1000})"])("%s is refused", (source) => {
  expect(() => new RegexMatcher(source)).toThrow(RegexError);
});
