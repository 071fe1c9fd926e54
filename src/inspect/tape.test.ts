import fc from "fast-check";
import { expect, test } from "vitest";
import { Tape } from "./tape.ts";

const pieces = fc.array(fc.record({ text: fc.string({ maxLength: 12 }), bytes: fc.integer({ min: 1, max: 60 }) }), {
  maxLength: 60,
});

test("holds at most its limit, the beginning and the end, and counts what is between them", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 400 }), pieces, (limit, added) => {
      const tape = new Tape<string>(limit);
      let bytes = 0;
      for (const { text, bytes: more } of added) {
        bytes += tape.add(text, more, text.length);
        expect(tape.bytes).toBe(bytes);
        expect(tape.bytes).toBeLessThanOrEqual(limit);
      }
      const texts = added.map(({ text }) => text);
      const { pieces: kept, left_out: leftOut } = tape.contents();
      const { after, pieces: count, characters } = leftOut ?? { after: texts.length, pieces: 0, characters: 0 };
      expect(kept).toEqual([...texts.slice(0, after), ...texts.slice(after + count)]);
      expect(characters).toBe(texts.slice(after, after + count).join("").length);
    }),
  );
});

test("keeps the newest where it fits at all", () => {
  fc.assert(
    fc.property(fc.integer({ min: 80, max: 400 }), pieces, (limit, added) => {
      const tape = new Tape<number>(limit);
      for (const [at, { bytes }] of added.entries()) tape.add(at, bytes, 1);
      // The end has three quarters of the limit, and no piece is longer than that here.
      if (added.length > 0) expect(tape.contents().pieces.at(-1)).toBe(added.length - 1);
    }),
  );
});

test("a long stream costs no more than what is kept of it", () => {
  const tape = new Tape<number>(1000);
  for (let at = 0; at < 200_000; at++) tape.add(at, 10, 1);
  const { pieces: kept, left_out: leftOut } = tape.contents();
  expect(kept).toHaveLength(100);
  expect(kept.slice(24, 26)).toEqual([24, 199_925]);
  expect(leftOut).toEqual({ after: 25, pieces: 199_900, characters: 199_900 });
});
