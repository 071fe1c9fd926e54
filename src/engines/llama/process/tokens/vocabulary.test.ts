import fc from "fast-check";
import { expect, test, describe } from "vitest";
import { Vocabulary, TokenDecoder } from "./vocabulary.ts";

describe("the bytes of tokens", () => {
  /** llama.h, `llama_token_attr`, by the types that a GGUF has. */
  const flags = new Map([
    [1, 4],
    [2, 1],
    [3, 8],
    [4, 16],
    [6, 32],
  ]);

  /** A vocabulary with these entries: text and type (1 normal, 2 unknown, 3 control, 4 user-defined, 6 byte). */
  function vocabularyOf(kind: string, entries: readonly (readonly [string, number])[]): Vocabulary {
    return new Vocabulary({
      vocabularySize: entries.length,
      tokens: { bos: null, eos: 0, eot: null },
      metadata: (key) => (key === "tokenizer.ggml.model" ? kind : null),
      entry: (token) => entries[token]?.[0] ?? "",
      attributes: (token) => flags.get(entries[token]?.[1] ?? 1) ?? 0,
      endsGeneration: (token) => token === 0,
      tokenBytes: () => Buffer.from("from the library"),
    });
  }

  function texts(vocabulary: Vocabulary): string[] {
    return Array.from({ length: vocabulary.size }, (_, token) =>
      Buffer.from(vocabulary.bytes(token)).toString("latin1"),
    );
  }

  test("byte-level vocabularies: printable substitutes are decoded to bytes; added entries are plain text", () => {
    const vocabulary = vocabularyOf("gpt2", [
      ["<|end|>", 3],
      ["Ġhello", 1],
      ["Ċ", 1],
      ["Ã©", 1],
      ["ðŁĺ", 1],
      [" two  spaces", 4],
    ]);
    expect(texts(vocabulary)).toEqual([
      "<|end|>",
      " hello",
      "\n",
      "\u00c3\u00a9",
      "\u00f0\u009f\u0098",
      " two  spaces",
    ]);
    expect(vocabulary.controlTexts()).toEqual(["<|end|>"]);
    expect(vocabulary.userDefinedTexts()).toEqual([" two  spaces"]);
    expect(vocabulary.endTokens()).toEqual([0]);
    expect(vocabulary.longestToken()).toBe(12);
  });

  test("SentencePiece vocabularies: ▁ is a space, byte entries are bytes, and other entries of that form are text", () => {
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

  test("other tokenizers are decoded by llama.cpp", () => {
    expect(texts(vocabularyOf("rwkv", [["\\n", 1]]))).toEqual(["from the library"]);
  });
});

describe("decoding tokens", () => {
  test("bytes that are split anywhere give the same text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.array(fc.nat(60)), (text, cuts) => {
        const bytes = new TextEncoder().encode(text);
        const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const reader = new TokenDecoder();
        const pieces = edges.slice(1).map((end, i) => reader.push(bytes.subarray(edges[i], end)));
        expect(pieces.join("") + reader.end()).toBe(text);
        // A text may hold one of its own.
        if (!text.includes("\ufffd")) for (const piece of pieces) expect(piece).not.toContain("\ufffd");
      }),
    );
  });

  test("invalid bytes become U+FFFD, and a byte order mark is text", () => {
    const reader = new TokenDecoder();
    expect(reader.push(Uint8Array.of(0xf0, 0x9f))).toBe("");
    expect(reader.push(Uint8Array.of(0x41))).toBe("\ufffdA");
    expect(reader.push(Uint8Array.of(0xef, 0xbb, 0xbf))).toBe("\ufeff");
    expect(reader.push(Uint8Array.of(0xe2, 0x82))).toBe("");
    expect(reader.end()).toBe("\ufffd");
  });
});
