import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TokenCandidates } from "../../src/engines/llama/process/c-api/native-sampler.ts";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import {
  TokenGrammar,
  type AnswerGrammar,
  type GrammarVocabulary,
  TokenTrie,
} from "../../src/engines/llama/process/sampling/token-grammar.ts";
import { Vocabulary } from "../../src/engines/llama/process/tokens/vocabulary.ts";
import { schemaToGbnf } from "../support/gbnf-of.ts";
import { boundedSchema } from "../support/schemas.ts";
import { NativeGrammar } from "./native-grammar.ts";
import { openNativeModel } from "./native-model.ts";
import { runs } from "../support/runs.ts";

// Which tokens a grammar allows is computed by us, within a budget; llama.cpp's own grammar, which has none, must agree.
let model: NativeModel;
let vocabulary: Vocabulary;
let around: GrammarVocabulary;

beforeAll(() => {
  model = openNativeModel("models/demo/demo.gguf");
  vocabulary = new Vocabulary(model);
  const candidates = new TokenCandidates(model.api, model.vocabularySize);
  const tokenize = (text: string): readonly number[] => model.tokenize(text, true);
  around = { vocabulary, candidates, tokenize, trie: new TokenTrie(vocabulary) };
});
afterAll(() => model.free());

function begin(gbnf: string, written = ""): AnswerGrammar {
  const answer = new TokenGrammar(gbnf, "grammar", around).start(written);
  if (!answer) throw new Error(`It allows nothing: ${gbnf}`);
  return answer;
}

function allowedBy(answer: AnswerGrammar): number[] {
  return answer.among(new Float32Array(model.vocabularySize)).tokens.toSorted((one, other) => one - other);
}

/** Walks through a grammar as `choose` decides, and compares the allowed tokens at each step with those of llama.cpp. */
function compare(gbnf: string, choose: (among: readonly number[]) => number, most = 40): void {
  const theirs = new NativeGrammar(model, gbnf, new TokenCandidates(model.api, model.vocabularySize));
  const ours = begin(gbnf);
  let written: Uint8Array = new Uint8Array();
  for (let step = 0; step < most; step++) {
    // llama.cpp lets bytes pass that are no UTF-8: characters in a longer form than they have, surrogates, and F5 to FF.
    const isText = (token: number): boolean =>
      vocabulary.endsGeneration(token) || isUtf8([...written, ...vocabulary.bytes(token)]);
    const allowed = theirs.allowed().filter(isText);
    expect(allowedBy(ours).filter(isText)).toEqual(allowed);
    if (allowed.length === 0) break;
    const token = choose(allowed);
    expect(ours.allows(token)).toBe(true);
    if (vocabulary.endsGeneration(token)) break;
    theirs.accept(token);
    ours.accept(token);
    written = Uint8Array.of(...written, ...vocabulary.bytes(token));
  }
  theirs.free();
}

/** The bytes are a text, whose last character may be open. */
function isUtf8(bytes: readonly number[]): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes), { stream: true });
    return true;
  } catch {
    return false;
  }
}

function compareByChance(gbnf: string, chances: Iterator<number>, most?: number): void {
  compare(gbnf, (among) => among[(Number(chances.next().value) || 0) % among.length] ?? 0, most);
}

test("a schema's grammar allows the tokens that it allows for llama.cpp", () => {
  fc.assert(
    fc.property(boundedSchema(2), fc.infiniteStream(fc.nat()), ({ schema }, chances) => {
      compareByChance(schemaToGbnf(schema).gbnf, chances);
    }),
    runs(20),
  );
});

test.each([
  ["characters of several bytes", 'root ::= ("é" | "ü" | "漢字" | "😀" | "e") [à-ö] "漢"* [😀-😂]{1,2}'],
  ["a text that may end anywhere", 'root ::= ("a" ("b" ("c")?)?)?'],
  ["white space", 'root ::= [ \\t\\n]* "{" [ \\n]* "}" [ \\n]*'],
  ["a name of an end token", 'root ::= ("<" [^>]* ">")*'],
  ["U+FFFD", 'root ::= "\\uFFFD"? "ab" "c"'],
  ["any character", "root ::= .*"],
  ["tokens by number", "root ::= (<[70]> | <[71]>) !<[72]> <[73]>"],
  ["tokens beside characters", 'root ::= (<[70]> "a" | <[71]> | "c")'],
])("and so does a grammar of %s", (_name, gbnf) => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.nat()), (chances) => compareByChance(gbnf, chances, 12)),
    runs(10),
  );
});

test("a grammar goes on from a text that has already come, or does not begin", () => {
  const [b = -1] = model.tokenizeContinuation("b", false);
  expect(begin('root ::= "a" ("b" | "c")', "a").allows(b)).toBe(true);
  expect(new TokenGrammar('root ::= "a"', "grammar", around).start("b")).toBeNull();
});

test("a token that the model does not have is an error of the grammar", () => {
  expect(() => new TokenGrammar("root ::= <no such token>", "grammar", around)).toThrow(
    "'<no such token>' is not a single token of this model",
  );
});

// llama.cpp followed each token along every way again: 180 repetitions held a model for minutes. No step is repeated here.
test.each([
  'root ::= ("a"? "b"?){1,180}',
  'root ::= ("a"? "b"?){1,500}',
  'root ::= ("a"? "b"? "c"?){1,100}',
  `root ::= ${'("a"? '.repeat(60)}${")?".repeat(60)}`,
])("a grammar with many ways for one text is followed: %s", (gbnf) => {
  const answer = begin(gbnf);
  const [a = -1] = model.tokenizeContinuation("a", false);
  for (let step = 0; step < 50; step++) {
    allowedBy(answer);
    answer.accept(a);
  }
});

// The ways to read this double with every character: nothing can follow them all.
test("a grammar that cannot be followed within the budget ends with a 400 that names it", () => {
  const answer = begin('root ::= "a" root "b" | "a" root "c" | ""');
  const [a = -1] = model.tokenizeContinuation("a", false);
  const followOn = (): void => {
    for (let step = 0; step < 100; step++) answer.accept(a);
  };
  expect(followOn).toThrow(
    expect.objectContaining({
      failure: expect.objectContaining({
        status: 400,
        param: "grammar",
        message: expect.stringMatching(
          /cannot go on by the grammar at 'grammar': a text can be read in too many ways/,
        ) as string,
      }) as object,
    }),
  );
});
