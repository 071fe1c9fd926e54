import type { LlamaModel, Token } from "node-llama-cpp";
import { expect, test } from "vitest";
import { Vocabulary } from "./vocabulary.ts";

/** A vocabulary with these entries: text and type (1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte). */
function vocabularyOf(kind: string, entries: readonly (readonly [string, number])[]): Vocabulary {
  const ggml = { model: kind, tokens: entries.map(([text]) => text), token_type: entries.map(([, type]) => type) };
  return new Vocabulary({
    fileInfo: { metadata: { tokenizer: { ggml } } },
    tokens: { eos: 0, eot: null },
    isEogToken: (token: number) => token === 0,
    detokenize: () => "from the library",
  } as unknown as LlamaModel);
}

function texts(vocabulary: Vocabulary): string[] {
  return Array.from({ length: vocabulary.size }, (_, token) =>
    Buffer.from(vocabulary.bytes(token as Token)).toString("latin1"),
  );
}

test("byte-level vocabularies: bytes behind printable stand-ins; added entries are themselves", () => {
  const vocabulary = vocabularyOf("gpt2", [
    ["<|end|>", 3],
    ["Ġhello", 1],
    ["Ċ", 1],
    ["Ã©", 1],
    ["ðŁĺ", 1],
    [" two  spaces", 4],
  ]);
  expect(texts(vocabulary)).toEqual(["<|end|>", " hello", "\n", "\u00c3\u00a9", "\u00f0\u009f\u0098", " two  spaces"]);
  expect(vocabulary.controlTexts()).toEqual(["<|end|>"]);
  expect(vocabulary.userDefinedTexts()).toEqual([" two  spaces"]);
  expect(vocabulary.endTokens()).toEqual([0]);
  expect(vocabulary.longestToken()).toBe(12);
});

test("SentencePiece vocabularies: ▁ is a space, byte entries are bytes, and their look-alikes are text", () => {
  const vocabulary = vocabularyOf("llama", [
    ["</s>", 3],
    ["▁the", 1],
    ["<0x0A>", 6],
    ["<0xE2>", 6],
    ["<0x0A>", 1],
    ["▁▁", 1],
  ]);
  expect(texts(vocabulary)).toEqual(["</s>", " the", "\n", "\u00e2", "<0x0A>", "  "]);
});

test("a tokenizer of another kind is asked", () => {
  expect(texts(vocabularyOf("rwkv", [["\\n", 1]]))).toEqual(["from the library"]);
});
