import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Candidates } from "../../src/engines/llama/process/c-api/candidates.ts";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import { NativeGrammar } from "../../src/engines/llama/process/c-api/native-sampler.ts";
import { FollowedGrammar } from "../../src/engines/llama/process/followed-grammar.ts";
import { TokensByBeginning } from "../../src/engines/llama/process/tokens-by-beginning.ts";
import { Vocabulary } from "../../src/engines/llama/process/vocabulary.ts";
import { schemaToGbnf } from "../../src/formats/grammar/schema-to-gbnf.ts";
import { boundedSchema } from "../support/schemas.ts";
import { openNativeModel } from "./native-model.ts";

// Where few tokens may come next, llama.cpp is asked about those only. It must not allow any other.
let model: NativeModel;
let vocabulary: Vocabulary;
let tokens: TokensByBeginning;
let candidates: Candidates;

beforeAll(() => {
  model = openNativeModel("models/demo/demo.gguf");
  vocabulary = new Vocabulary(model);
  tokens = new TokensByBeginning(vocabulary);
  candidates = new Candidates(model.api, model.vocabularySize);
});
afterAll(() => model.free());

/** Walks through a grammar as `choose` has it, and tells of how many steps the next tokens were known to be few. */
function walk(gbnf: string, choose: (among: readonly number[]) => number, most = 40): { few: number; steps: number } {
  const grammar = NativeGrammar.parse(model, gbnf, candidates);
  if (!grammar) throw new Error(`It was not read: ${gbnf}`);
  const logits = new Float32Array(model.vocabularySize);
  const followed = new FollowedGrammar(gbnf, "grammar").follow();
  const told = { few: 0, steps: 0 };
  for (; told.steps < most; told.steps++) {
    const allowed = grammar.among(logits).tokens;
    const next = followed.next(tokens);
    if (next) {
      told.few++;
      const few = grammar.among(logits, next).tokens;
      expect(few.toSorted((one, other) => one - other)).toEqual(allowed);
    }
    const token = choose(allowed);
    if (vocabulary.endsGeneration(token)) break;
    grammar.accept(token);
    followed.read(vocabulary.bytes(token));
  }
  grammar.free();
  return told;
}

test("of the tokens that a schema's grammar allows none is left out", { timeout: 60_000 }, () => {
  const all = { few: 0, steps: 0 };
  fc.assert(
    fc.property(boundedSchema(2), fc.infiniteStream(fc.nat()), ({ schema }, chances) => {
      const told = walk(schemaToGbnf(schema).gbnf, (among) => among[(chances.next().value ?? 0) % among.length] ?? 0);
      all.few += told.few;
      all.steps += told.steps;
    }),
    { numRuns: 60 },
  );
  // Else the test would say nothing.
  expect(all.few).toBeGreaterThan(all.steps / 4);
});

test.each([
  ["characters of several bytes", 'root ::= ("é" | "ü" | "漢字" | "😀" | "e") [à-ö] "漢"* [😀-😂]{1,2}'],
  ["a text that may end anywhere", 'root ::= ("a" ("b" ("c")?)?)?'],
  ["white space", 'root ::= [ \\t\\n]* "{" [ \\n]* "}" [ \\n]*'],
  ["a name of an end token", 'root ::= ("<" [^>]* ">")*'],
  ["U+FFFD", 'root ::= "\\uFFFD"? "ab" "c"'],
])("nor in a grammar of %s", (_name, gbnf) => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), (chances) => {
      walk(gbnf, (among) => among[(chances.next().value ?? 0) % among.length] ?? 0, 12);
    }),
    { numRuns: 30 },
  );
});

test("within a string all tokens may come, and behind a character of two bytes none but those that begin like it", () => {
  const inString = new FollowedGrammar('root ::= "a" [^"]* "b"', "grammar").follow();
  inString.read(new TextEncoder().encode("a"));
  expect(inString.next(tokens)).toBeUndefined();
  const cut = new FollowedGrammar('root ::= "é!"', "grammar").follow();
  expect(
    cut
      .next(tokens)
      ?.every((token) => [0xc3, undefined].includes(vocabulary.bytes(token)[0]) || vocabulary.endsGeneration(token)),
  ).toBe(true);
  cut.read(Uint8Array.of(0xc3));
  // Of the bytes that complete a character nothing is said.
  expect(cut.next(tokens)).toBeUndefined();
  cut.read(Uint8Array.of(0xa9));
  expect(cut.next(tokens)?.length).toBeGreaterThan(0);
});
