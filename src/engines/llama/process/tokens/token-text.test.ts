import fc from "fast-check";
import { expect, test } from "vitest";
import { TokenDecoder } from "./vocabulary.ts";

test("bytes cut anywhere come together to the same text", () => {
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

test("what never becomes a character comes as U+FFFD, and a byte order mark is text", () => {
  const reader = new TokenDecoder();
  expect(reader.push(Uint8Array.of(0xf0, 0x9f))).toBe("");
  expect(reader.push(Uint8Array.of(0x41))).toBe("\ufffdA");
  expect(reader.push(Uint8Array.of(0xef, 0xbb, 0xbf))).toBe("\ufeff");
  expect(reader.push(Uint8Array.of(0xe2, 0x82))).toBe("");
  expect(reader.end()).toBe("\ufffd");
});
