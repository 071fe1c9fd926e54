import fc from "fast-check";
import { expect, test } from "vitest";
import { divergingTexts } from "./known-prompts.ts";

const text = fc.string({ unit: fc.constantFrom("a", "ü", "日", "😀", "😁", " ", "\n", "x"), maxLength: 400 });
const utf8 = new TextEncoder();

// A token may hold a part of a character: cut anywhere, and each piece a token of its own.
test("characters are whole on both sides, however tokens cut them, and each side is as long as is shown", () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(text, text, text, lengths, (start, one, two, cuts) => {
      const vocabulary: Uint8Array[] = [];
      const ids = new Map<string, number>();
      const tokensOf = (words: string): number[] => {
        const bytes = utf8.encode(words);
        const tokens: number[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const piece = bytes.subarray(at, at + (cuts[i % cuts.length] ?? 1));
          at += piece.length;
          const id = ids.get(piece.join()) ?? vocabulary.push(piece) - 1;
          ids.set(piece.join(), id);
          tokens.push(id);
        }
        return tokens;
      };
      const [known, asked] = [tokensOf(start + one), tokensOf(start + two)];
      let at = 0;
      while (at < known.length && known[at] === asked[at]) at++;
      const told = divergingTexts((token) => vocabulary[token] ?? new Uint8Array(), known, asked, at);
      expect(JSON.stringify(told)).not.toMatch(/\ufffd|\\ud[89a-f]/);
      expect(start + one).toContain(told.before + told.known);
      expect(start + two).toContain(told.before + told.asked);
      const units = [...(start + two)];
      const common = [...(start + one)].findIndex((character, place) => character !== units[place]);
      const before = units.slice(0, common === -1 ? [...(start + one)].length : common).join("");
      expect(told.before.length).toBeGreaterThanOrEqual(Math.min(239, before.length));
      expect(told.asked.length).toBeGreaterThanOrEqual(Math.min(79, (start + two).length - before.length));
      expect(told.known.length).toBeLessThanOrEqual(80);
    }),
  );
});
