import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { llamaGrammar } from "../../../../test/support/llama-grammar.ts";
import { grammarTexts } from "../../../../test/support/random-grammars.ts";
import { GrammarLoadError } from "./grammar-errors.ts";
import { GrammarBudget, type GrammarState, GrammarStates } from "./grammar-states.ts";
import { readGbnf, refuseLeftRecursion } from "./read-gbnf.ts";

const limits = { depth: 200, elements: 4_000_000 };

function check(gbnf: string): void {
  refuseLeftRecursion(readGbnf(gbnf, limits).rules);
}

/** The state after a text, computed within a number of steps. */
function read(gbnf: string, text: string, steps = 2_000_000): GrammarState | null {
  const budget = new GrammarBudget(steps);
  const start = new GrammarStates(readGbnf(gbnf, limits).root).start(budget);
  return start?.read(new TextEncoder().encode(text), budget) ?? null;
}

function accepts(gbnf: string, text: string): boolean {
  return read(gbnf, text)?.mayEnd === true;
}

const texts = fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 6 }), {
  minLength: 8,
  maxLength: 8,
});

describe("a grammar as we read it", () => {
  test("has the texts that it has for llama.cpp, and is refused where llama.cpp refuses it", async () => {
    await fc.assert(
      fc.asyncProperty(grammarTexts(1), texts, async (gbnf, some) => {
        try {
          check(gbnf);
        } catch {
          // llama.cpp does not notice all that pile up without an end; what is malformed, it refuses, too.
          await expect(llamaGrammar(gbnf)).rejects.toThrow();
          return;
        }
        // llama.cpp refuses repetitions of nothing, which are harmless here.
        const theirs = await llamaGrammar(gbnf).catch(() => null);
        fc.pre(theirs !== null);
        for (const text of some) expect(accepts(gbnf, text), text).toBe(theirs?.accepts(text));
      }),
      { numRuns: 100 },
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
    ['root ::= "a"{5,2}', "{5,2} is not a valid repetition"],
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

const nested = (item: string, depth: number): string => `root ::= ${`(${item} `.repeat(depth)}${")?".repeat(depth)}`;
const run = "a".repeat(64);

// llama.cpp takes time that doubles with each character of these, and holds the model until it is ended. States are computed once.
test.each([
  ["optional parts, repeated", 'root ::= ("a"? "b"?){1,500}', run],
  ["optional parts in each other", nested('"a"?', 60), "a".repeat(60)],
  ["two ways for each character", "root ::= ([ ] | .)*", run],
  ["two ways for two characters", 'root ::= ("  " | [ ] [ ])*', " ".repeat(64)],
  ["repetitions side by side", `root ::= ${"[ ]* ".repeat(10)}`, " ".repeat(64)],
  ["alternatives that double", chain(40, (next) => `${next} | ${next}`, '"a"'), "a"],
  ["rules that double", chain(40, (next) => `${next} ${next}`, '"a"'), run],
  ["4,000 alternatives", `root ::= ${Array.from({ length: 4000 }, (_, at) => `"a${at}"`).join(" | ")}`, "a3999"],
  ["a repetition of what may be empty", 'root ::= ("a"*)* "b"', `${run}b`],
  ["what repeats one word", 'root ::= ("ab" | "ab"){1,500}', "ab".repeat(64)],
  ["a rule that is itself", 'root ::= root | "a"', "a"],
])("a text that can be read in many ways is followed: %s", (_, gbnf, text) => {
  check(gbnf);
  expect(read(gbnf, text)).not.toBeNull();
});

describe("ways that double without becoming one", () => {
  test.each([
    ["things in each other, with two ways each", 'root ::= "a" root "b" | "a" root "c" | ""'],
    ["the same after a long beginning", `root ::= "a"{30} x\nx ::= "a" x "b" | "a" x "c" | ""`],
    ["parts that may be empty, and double", chain(40, (next) => `${next} ${next}`, '"a" | ""')],
  ])("end the reading when the budget is spent: %s", (_, gbnf) => {
    check(gbnf);
    expect(() => read(gbnf, run)).toThrow(GrammarLoadError);
  });
});

test("a character of several bytes is read byte by byte, and never in a longer form than it has", () => {
  const budget = new GrammarBudget(1000);
  const start = new GrammarStates(readGbnf('root ::= [^a] "!"', limits).root).start(budget);
  const after = (...bytes: number[]): GrammarState | null => start?.read(bytes, budget) ?? null;
  expect(after(0xc3)?.mayEnd).toBe(false);
  expect(after(0xc3, 0xa9, 0x21)?.mayEnd).toBe(true);
  expect(after(0xc3, 0x21)).toBeNull();
  expect(after(0xa9)).toBeNull();
  expect(after(0xf0, 0x9f, 0x98, 0x80, 0x21)?.mayEnd).toBe(true);
  // Longer forms of `/`, a surrogate, and more than U+10FFFF.
  for (const bytes of [
    [0xc0, 0xaf],
    [0xe0, 0x80, 0xaf],
    [0xf0, 0x80, 0x80, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
  ])
    expect(after(...bytes), String(bytes)).toBeNull();
});

test("texts that can be read in the same ways share a state", () => {
  const budget = new GrammarBudget(10_000);
  const states = new GrammarStates(readGbnf("root ::= [ab]* [0-9]*", limits).root);
  const state = (text: string): GrammarState | null =>
    states.start(budget)?.read(new TextEncoder().encode(text), budget) ?? null;
  expect(state("a")).toBe(state("abba"));
  expect(state("a0")).not.toBe(state("abba"));
  const { size } = states;
  state("abbaabab");
  expect(states.size).toBe(size);
});
