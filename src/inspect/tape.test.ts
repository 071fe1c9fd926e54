import fc from "fast-check";
import { expect, test } from "vitest";
import { Tape } from "./tape.ts";
import type { Part } from "./tape.ts";

interface Texts extends Part {
  readonly texts: readonly string[];
  isGone: boolean;
}

function texts(list: readonly string[], bytes: number): Texts {
  const characters = list.join("").length;
  return { texts: list, bytes, pieces: list.length, characters, isGone: false, letGo };
}

function letGo(this: Texts): void {
  this.isGone = true;
}

const parts = fc.array(
  fc
    .record({
      list: fc.array(fc.string({ maxLength: 12 }), { minLength: 1, maxLength: 4 }),
      bytes: fc.integer({ min: 1, max: 60 }),
    })
    .map(({ list, bytes }) => texts(list, bytes)),
  { maxLength: 60 },
);

test("holds at most its limit, the beginning and the end, and counts what is between them", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 400 }), parts, (limit, added) => {
      const tape = new Tape<Texts>(limit);
      let bytes = 0;
      for (const part of added) {
        bytes += tape.add(part);
        expect(tape.bytes).toBe(bytes);
        expect(tape.bytes).toBeLessThanOrEqual(limit);
      }
      const { pieces: kept, left_out: leftOut } = tape.contents((part) => part.texts);
      const all = added.flatMap((part) => part.texts);
      const { after, pieces: count, characters } = leftOut ?? { after: all.length, pieces: 0, characters: 0 };
      expect(kept).toEqual([...all.slice(0, after), ...all.slice(after + count)]);
      expect(characters).toBe(all.slice(after, after + count).join("").length);
      expect(added.flatMap((part) => (part.isGone ? [] : part.texts))).toEqual(kept);
      tape.letGo();
      expect(added.every(({ isGone }) => isGone)).toBe(true);
    }),
  );
});

test("keeps the newest where it fits at all", () => {
  fc.assert(
    fc.property(fc.integer({ min: 80, max: 400 }), parts, (limit, added) => {
      const tape = new Tape<Texts>(limit);
      for (const part of added) tape.add(part);
      // The end has three quarters of the limit, and no part is longer than that here.
      if (added.length > 0) expect(tape.contents((part) => [part]).pieces.at(-1)).toBe(added.at(-1));
    }),
  );
});

test("of a long stream, the first quarter and the last three are kept", () => {
  const tape = new Tape<Texts>(1000);
  for (let at = 0; at < 100_000; at++) tape.add(texts([`${at}`], 10));
  const { pieces: kept, left_out: leftOut } = tape.contents((part) => part.texts);
  expect(kept).toHaveLength(100);
  expect(kept.slice(24, 26)).toEqual(["24", "99925"]);
  const between = Array.from({ length: 99_900 }, (_, at) => `${at + 25}`).join("");
  expect(leftOut).toEqual({ after: 25, pieces: 99_900, characters: between.length });
});
