import * as fc from "fast-check";
import { expect, test } from "vitest";
import { PatternSet, RegexMatcher } from "./regex-matcher.ts";
import { RegexError } from "./regex-syntax.ts";
import { cpuMs } from "../../../../test/support/hang.ts";

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
  "^\\p{L}+$",
];

test("it agrees with the runtime for every pattern and text", () => {
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

test("it agrees with the runtime for random patterns", () => {
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
  expect(cpuMs(() => expect(new RegexMatcher(source).test(text)).toBe(false))).toBeLessThan(5000);
});

test.each(["(?=a)b", "(a)\\1", "\\bword\\b", "(", "((a{1000}){1000})"])("%s is refused", (source) => {
  expect(() => new RegexMatcher(source)).toThrow(RegexError);
});

test.each(["^(a+)+$", "^(a|a)*$", "(a*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$"])(
  "the work for %s grows as the text does",
  (source) => {
    const matcher = new RegexMatcher(source);
    const workOn = (length: number): number => {
      let sum = 0;
      expect(matcher.test(`${"a".repeat(length)}!`, (work) => (sum += work))).toBe(false);
      return sum;
    };
    expect(workOn(20_000)).toBeLessThan(2.1 * workOn(10_000));
  },
);

test("a pattern that is too large is refused early, with the limit", () => {
  expect(() => new RegexMatcher("((a{100}){100}){100}")).toThrow(/more than 10000 steps/);
  expect(() => new RegexMatcher("a".repeat(10_001))).toThrow(/longer than 10000 characters/);
  expect(() => new RegexMatcher("(".repeat(300) + ")".repeat(300))).toThrow(/nested more than 200 deep/);
  expect(() => new RegexMatcher("\\p{L}".repeat(17))).toThrow(/more than 16 property escapes/);
  // Nothing, ten thousand million times.
  expect(new RegexMatcher("((){100000}){100000}a").test("a")).toBe(true);
});

test("an unsupported pattern gives neither true nor false", () => {
  const patterns = new PatternSet(() => {});
  expect([patterns.matches("^a", "ab"), patterns.matches("^a", "b")]).toEqual([true, false]);
  expect(["(?=a)a", "(a)\\1", "a("].map((pattern) => patterns.matches(pattern, "aa"))).toEqual([null, null, null]);
});
