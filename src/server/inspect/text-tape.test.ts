import fc from "fast-check";
import { expect, test } from "vitest";
import { PackedTexts } from "./packed-texts.ts";
import { TextTape } from "./text-tape.ts";

/** Texts as they may come, halves of pairs among them, and now and then the end, which may not be the last word. */
const told = fc.array(
  fc.oneof(
    { weight: 9, arbitrary: fc.string({ unit: "binary", minLength: 1, maxLength: 300 }) },
    { weight: 3, arbitrary: fc.string({ minLength: 1, maxLength: 3000 }) },
    fc.constant(null),
  ),
  { maxLength: 80 },
);

test("what is kept is to the letter what came, packed or not: the beginning and the end, with what is between them counted", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1024, max: 200_000 }), told, (limit, steps) => {
      const tape = new TextTape(limit, new PackedTexts());
      let bytes = 0;
      for (const [at, step] of steps.entries()) {
        if (step === null) tape.end();
        else bytes += tape.add(at, step);
        expect(bytes).toBeGreaterThanOrEqual(0);
        expect(bytes).toBeLessThanOrEqual(limit);
      }
      const { pieces, left_out: leftOut } = tape.contents();
      const { after, characters } = leftOut ?? { after: pieces.length, characters: 0 };
      const all = steps.map((step) => step ?? "").join("");
      const text = (from: number, to?: number): string =>
        pieces
          .slice(from, to)
          .map((piece) => piece.text)
          .join("");
      const [head, tail] = [text(0, after), text(after)];
      expect(all.startsWith(head) && all.endsWith(tail)).toBe(true);
      expect(head.length + characters + tail.length).toBe(all.length);
      expect(pieces.map(({ ms }) => ms)).toEqual(pieces.map(({ ms }) => ms).toSorted((a, b) => a - b));
    }),
  );
});

test("short pieces are told as they came, each with its time", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "binary", maxLength: 40 }), { maxLength: 2000 }), (texts) => {
      const tape = new TextTape(2 * 1024 * 1024, new PackedTexts());
      for (const [at, text] of texts.entries()) tape.add(at, text);
      tape.end();
      expect(tape.contents()).toEqual({ pieces: texts.map((text, ms) => ({ ms, text })) });
    }),
    { numRuns: 30 },
  );
});

test("of a stream without an end, at most the limit is kept, and at least four fifths of it", () => {
  const limit = 1024 * 1024;
  const tape = new TextTape(limit, new PackedTexts());
  let bytes = 0;
  for (let at = 0; at < 100_000; at++) bytes += tape.add(at, `data: ${at}\n\n`);
  expect(bytes).toBeLessThanOrEqual(limit);
  expect(bytes).toBeGreaterThan((limit * 4) / 5);
  const { pieces, left_out: leftOut } = tape.contents();
  expect(pieces.at(-1)).toEqual({ ms: 99_999, text: "data: 99999\n\n" });
  expect(pieces.length + (leftOut?.pieces ?? 0)).toBe(100_000);
  expect(pieces[leftOut?.after ?? 0]?.ms).toBe((leftOut?.after ?? 0) + (leftOut?.pieces ?? 0));
});
