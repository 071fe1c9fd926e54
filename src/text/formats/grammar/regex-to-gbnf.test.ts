import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { Gbnf } from "../../../../test/support/gbnf.ts";
import { llamaGrammar } from "../../../../test/support/llama-grammar.ts";
import { gbnfOf } from "../../../../test/support/gbnf-of.ts";
import { choice, literal } from "./expression.ts";
import { GrammarError } from "./grammar.ts";
import { RegexError } from "./regex-syntax.ts";
import { regexExpression } from "./regex-to-gbnf.ts";

function regexToGbnf(pattern: string): string {
  return gbnfOf(regexExpression(pattern, "whole"));
}

const patterns = [
  "abc",
  "a|bc|",
  "^a+$",
  "^(ab?){2,3}c*$",
  "(a*)*b",
  "^a|b$",
  "(^|x)a(b|$)",
  "[^ab]",
  "[a-c\\d-]x",
  "a.c",
  "\\x61\\u0062",
  "^(?:a|(?<n>b))c{0,2}$",
  "^$",
  "a{2}?",
  "\\w\\s\\S",
  "^\\p{Lu}",
];
/** Texts of few characters, so that they match now and then. */
const texts = fc
  .array(fc.constantFrom("a", "b", "c", "x", "-", "1", " ", "\n", "Ä"), { maxLength: 7 })
  .map((parts) => parts.join(""));

describe("regexExpression", () => {
  it.each(patterns)("matches what %s matches in JavaScript, anywhere and as a whole", (pattern) => {
    const anywhere = new Gbnf(gbnfOf(regexExpression(pattern, "anywhere")));
    const whole = new Gbnf(regexToGbnf(pattern));
    fc.assert(
      fc.property(texts, (text) => {
        expect([text, anywhere.accepts(text)]).toEqual([text, new RegExp(pattern, "u").test(text)]);
        expect([text, whole.accepts(text)]).toEqual([text, new RegExp(`^(?:${pattern})$`, "u").test(text)]);
      }),
    );
  });

  it("writes the beginnings of many alternatives once", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "😀"), maxLength: 4 });
    // Distinct ones: a few options are left as they are.
    const words = fc.uniqueArray(word, { minLength: 40, maxLength: 60 });
    fc.assert(
      fc.property(words, word, (some, text) => {
        const gbnf = regexToGbnf(`(${some.join("|")})x?`);
        const ours = new Gbnf(gbnf);
        for (const each of [text, `${text}x`, ...some])
          expect(ours.accepts(each)).toBe(some.includes(each.replace(/x$/, "")));
        // Next to each other, two options never begin with the same character.
        expect(gbnf).not.toMatch(/[(=] "(.)[^"]*"[^()]*\| "\1/u);
      }),
      { numRuns: 50 },
    );
  });

  it.each(patterns)("is taken by llama.cpp: %s", async (pattern) => {
    const theirs = await llamaGrammar(regexToGbnf(pattern));
    for (const text of ["a", "abc", "ab\n", ""]) {
      expect([text, theirs.accepts(text)]).toEqual([text, new RegExp(`^(?:${pattern})$`, "u").test(text)]);
    }
  });

  it("counts beyond what llama.cpp repeats", async () => {
    const theirs = await llamaGrammar(regexToGbnf("(ab){1500,4000}"));
    for (const [count, matches] of [
      [1499, false],
      [1500, true],
      [4000, true],
      [4001, false],
    ] as const) {
      expect(theirs.accepts("ab".repeat(count))).toBe(matches);
    }
  });

  it("reads Python's spellings", () => {
    expect(new Gbnf(regexToGbnf("\\A(?P<year>\\d{2})\\Z")).accepts("26")).toBe(true);
  });

  it.each([
    "(a",
    "a)",
    "[a",
    "a{3,1}",
    "*a",
    "\\",
    "a\\1",
    "(?=a)",
    "(?!a)b",
    "(?<=a)b",
    "(?i)a",
    "\\bword",
    "a^b",
    "a++",
    "[z-a]",
    "\\p{Nope}",
  ])("refuses %s", (pattern) => {
    expect(() => regexToGbnf(pattern)).toThrow(RegexError);
  });

  it("refuses what matches nothing", () => {
    expect(() => regexToGbnf("[]")).toThrow(GrammarError);
  });
});

describe("a choice of texts", () => {
  it("takes the options and nothing else, whatever their characters", async () => {
    const options = ['say "hi"', "back\\slash", "line\nend", "[x-y]^{2}", "日本 😀", "", "a", "ab"];
    const grammar = gbnfOf(choice(...options.map(literal)));
    const theirs = await llamaGrammar(grammar);
    for (const option of options)
      expect([option, theirs.accepts(option), new Gbnf(grammar).accepts(option)]).toEqual([option, true, true]);
    for (const other of ["say hi", "abc", "b"]) expect(theirs.accepts(other)).toBe(false);
  });

  it("needs an option", () => {
    expect(() => gbnfOf(choice())).toThrow(GrammarError);
  });
});
