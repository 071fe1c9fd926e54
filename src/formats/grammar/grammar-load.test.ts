import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { llamaGrammar } from "../../../test/support/llama-grammar.ts";
import { determinised } from "./determinise.ts";
import { GrammarLoadError } from "./gbnf-error.ts";
import { checkLoad } from "./grammar-load.ts";
import { gbnfOfData } from "./grammar.ts";
import { ParseStacks, type ParseStack } from "./parse-stacks.ts";
import { readGbnf, type GbnfRules } from "./read-gbnf.ts";

const limits = { depth: 200, elements: 4_000_000 };

function check(gbnf: string): void {
  checkLoad(readGbnf(gbnf, limits), 64);
}

function accepts({ root }: GbnfRules, text: string): boolean {
  const stacks = new ParseStacks(() => {}, 100_000);
  let ways: Iterable<ParseStack> = stacks.from(root);
  for (const character of text) ways = stacks.read(ways, character.codePointAt(0) ?? 0);
  return [...ways].some(({ place }) => place === null);
}

/** Expressions over few characters, so that many texts have many ways; rules refer to later ones only. */
function expressions(rules: readonly string[], maxDepth: number): fc.Arbitrary<string> {
  const times = fc.constantFrom("", "", "", "?", "*", "+", "{2}", "{0,3}", "{1,}");
  const leaf = fc.constantFrom(
    '"a"',
    '"b"',
    '"ab"',
    "[ab]",
    "[^a]",
    ".",
    '""',
    "[a-c]",
    ...rules.map((name) => ` ${name} `),
  );
  return fc.letrec<{ options: string; part: string; items: string }>((tie) => ({
    part: fc.oneof(
      { maxDepth },
      leaf,
      tie("options").map((inner) => `(${inner})`),
    ),
    items: fc
      .array(fc.tuple(tie("part"), times), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.map(([part, suffix]) => (part === '""' ? part : part + suffix)).join(" ")),
    options: fc.array(tie("items"), { minLength: 1, maxLength: 3 }).map((options) => options.join(" | ")),
  })).options;
}

function grammars(maxDepth: number): fc.Arbitrary<string> {
  return fc
    .tuple(expressions(["x", "y"], maxDepth), expressions(["y"], maxDepth), expressions([], maxDepth))
    .map(([root, x, y]) => `root ::= ${root}\nx ::= ${x}\ny ::= ${y}\n`);
}
const texts = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 6 }), {
  minLength: 8,
  maxLength: 8,
});

describe("a grammar as we read it", () => {
  test("has the texts that it has for llama.cpp, and is refused where llama.cpp refuses it", async () => {
    await fc.assert(
      fc.asyncProperty(grammars(2), texts, async (gbnf, some) => {
        let rules: GbnfRules;
        try {
          rules = readGbnf(gbnf, limits);
          checkLoad(rules, 16);
        } catch (error) {
          // What is too heavy may still be a grammar; what is none must not be one there.
          if (!(error instanceof GrammarLoadError)) await expect(llamaGrammar(gbnf)).rejects.toThrow();
          return;
        }
        const theirs = await llamaGrammar(gbnf);
        for (const text of some) expect(accepts(rules, text), text).toBe(theirs.accepts(text));
      }),
      { numRuns: 100 },
    );
  });

  test("has the same texts as an automaton, which is light", () => {
    fc.assert(
      fc.property(grammars(1), texts, (gbnf, some) => {
        let rules: GbnfRules;
        try {
          rules = readGbnf(gbnf, limits);
          checkLoad(rules, 16);
        } catch (error) {
          if (!(error instanceof GrammarLoadError)) return;
          rules = readGbnf(gbnf, limits);
        }
        // Repetitions in repetitions may need too many states, and take their time.
        fc.pre(rules.rules.length <= 20);
        const data = determinised(rules, 4_000_000);
        fc.pre(data !== null);
        const automaton = gbnfOfData(data ?? { root: { kind: "text", text: "" }, rules: [] });
        check(automaton);
        for (const text of some) expect(accepts(readGbnf(automaton, limits), text), text).toBe(accepts(rules, text));
      }),
      { numRuns: 40 },
    );
  });

  test.each([
    ["root ::= x", "there is no rule 'x'"],
    ['x ::= "a"', "there is no rule 'root'"],
    ['root ::= "a', "it ends within a text or a class"],
    ['root ::= "a" )', "the end of a line was expected (line 1, character 14)"],
    ['root ::= ("a"', "')' was expected"],
    ['root ::= "\\q"', "an unknown escape"],
    // llama.cpp repeats it 2^64 times, until memory ends.
    ['root ::= "a"{5,2}', "{5,2} is no repetition"],
    ['root ::= ("a" "b"){500} "c"{3000}', "it repeats more than 2000 times"],
    [`root ::= "${"a".repeat(30_000)}"{1000}`, "with its repetitions written out it has more than 4000000 elements"],
    ['root ::= root "a" | "b"', "the rule 'root' begins with itself"],
    // llama.cpp does not notice, and writes "root root root …" until memory ends.
    ['root ::= x root "a" | "b"\nx ::= y\ny ::= "c" | ""', "the rule 'root' begins with itself"],
  ])("that is none is refused (%#)", (gbnf, why) => {
    expect(() => check(gbnf)).toThrow(why);
  });
});

/** Rules in a chain, each made of the next by `body`. */
function chain(length: number, body: (next: string) => string, last: string): string {
  const rules = Array.from({ length }, (_, at) => `${at === 0 ? "root" : `r${at}`} ::= ${body(`r${at + 1}`)}`);
  return [...rules, `r${length} ::= ${last}`].join("\n");
}

// Each of these held every answer of a model until it was ended: llama.cpp's time grows with the ways to read a text.
describe("too many ways to read a text", () => {
  const nested = (item: string, depth: number): string => `root ::= ${`(${item} `.repeat(depth)}${")?".repeat(depth)}`;
  test.each([
    ["optional parts, repeated", 'root ::= ("a"? "b"?){1,500}'],
    ["optional parts in each other", nested('"a"?', 60)],
    ["two ways for each character", "root ::= ([ ] | .)*"],
    ["two ways for two characters", 'root ::= ("  " | [ ] [ ])*'],
    ["repetitions side by side", `root ::= ${"[ ]* ".repeat(10)}`],
    ["alternatives that double", chain(40, (next) => `${next} | ${next}`, '"a"')],
    ["4,000 alternatives", `root ::= ${Array.from({ length: 4000 }, (_, at) => `"a${at}"`).join(" | ")}`],
  ])("are counted, and then made one: %s", (_, gbnf) => {
    const rules = readGbnf(gbnf, limits);
    expect(() => checkLoad(rules, 64)).toThrow(GrammarLoadError);
    const automaton = determinised(rules, 4_000_000);
    expect(automaton).not.toBeNull();
    if (automaton) check(gbnfOfData(automaton));
  });

  test.each([
    ["things in each other, with two ways each", 'root ::= "a" root "b" | "a" root "c" | ""', "1000 ways at a time"],
    [
      "the same behind a long beginning",
      `root ::= [a-z]{300} x\nx ::= "a" x "b" | "a" x "c" | ""`,
      "1000 ways at a time",
    ],
    [
      "repetitions behind a long word, beside things in each other",
      `root ::= list "${"long ".repeat(10)}" ${"[ ]* ".repeat(10)}\nlist ::= "[" (list ("," list)*)? "]" | [a-z]+`,
      "more than 400000 ways",
    ],
    ["parts that may be empty, and double", chain(40, (next) => `${next} ${next}`, '"a" | ""'), "ways"],
  ])("are refused where there is no automaton: %s", (_, gbnf, why) => {
    expect(() => check(gbnf)).toThrow(why);
    expect(determinised(readGbnf(gbnf, limits), 4_000_000)).toBeNull();
  });
});

// These are as large, and harmless: none of them may be refused.
test.each([
  ["rules that double", chain(40, (next) => `${next} ${next}`, '"a"')],
  ["60 nested options", `root ::= ${'("a" '.repeat(60)}${")?".repeat(60)}`],
  ["a repetition of what may be empty", 'root ::= ("a"*)* "b"'],
  ["900 alternatives", `root ::= ${Array.from({ length: 900 }, (_, at) => `"a${at} b"`).join(" | ")}`],
  ["white space side by side", 'root ::= ws "{" ws (x ws ("," ws x)* ws)? "}"\nws ::= [ \\n]*\nx ::= [a-z]+ ws | root'],
  ["what repeats one word", 'root ::= ("ab" | "ab"){1,500}'],
])("%s", (_, gbnf) => {
  check(gbnf);
});

test("the ways that were found are told", () => {
  expect(checkLoad(readGbnf('root ::= "a" | "b" [a-z]*', limits), 64)).toBe(2);
  const many = Array.from({ length: 61 }, (_, at) => `"${at}"`).join(" | ");
  expect(checkLoad(readGbnf(`root ::= "x" (${many})`, limits), 64)).toBe(61);
});
