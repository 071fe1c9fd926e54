import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { textBytes } from "./recorded-text.ts";
import { fileTexts, TextTape } from "./text-tape.ts";

interface WatchedTape {
  readonly tape: TextTape;
  /** The bytes by which it has grown. */
  bytes: number;
}

function newTape(limit = 1024 * 1024, receivedAt = 0): WatchedTape {
  const watched: WatchedTape = {
    tape: new TextTape({ limit, receivedAt, grow: (bytes) => void (watched.bytes += bytes) }),
    bytes: 0,
  };
  return watched;
}

const added = fc.record({ to: fc.nat(3), text: fc.string({ minLength: 1, maxLength: 20 }), isLookedAt: fc.boolean() });

test("each tape has its own texts, in order, whenever someone looks", () => {
  fc.assert(
    fc.property(fc.array(added, { maxLength: 200 }), (steps) => {
      const tapes = [newTape(), newTape(), newTape(), newTape()];
      const expected: string[][] = tapes.map(() => []);
      for (const { to, text, isLookedAt } of steps) {
        tapes[to]?.tape.add(text);
        expected[to]?.push(text);
        if (isLookedAt) expect(tapes[to]?.tape.contents().chunks.map((chunk) => chunk.text)).toEqual(expected[to]);
      }
      fileTexts();
      for (const [at, texts] of expected.entries()) {
        expect(tapes[at]?.bytes).toBe(texts.reduce((sum, text) => sum + textBytes(text), 0));
        const chunks = tapes[at]?.tape.contents().chunks ?? [];
        expect(chunks.map((chunk) => chunk.text)).toEqual(texts);
        expect(chunks.map(({ ms }) => ms)).toEqual(chunks.map(({ ms }) => ms).toSorted((a, b) => a - b));
      }
    }),
  );
});

test("the time of a text is that of its arrival, counted from that of the request", () => {
  fileTexts();
  const now = vi.spyOn(performance, "now").mockReturnValue(7000);
  const { tape } = newTape(1000, 5000);
  tape.add("first");
  now.mockReturnValue(9000);
  expect(tape.contents().chunks).toEqual([{ ms: 2000, text: "first" }]);
  now.mockRestore();
});

test("few texts, and little text, wait to be filed", () => {
  fileTexts();
  const many = newTape();
  for (let at = 0; at < 1023; at++) many.tape.add("x");
  expect(many.bytes).toBe(0);
  many.tape.add("x");
  expect(many.bytes).toBe(1024 * textBytes("x"));

  const long = newTape();
  long.tape.add("x".repeat(256 * 1024));
  expect(long.bytes).toBe(0);
  long.tape.add("x");
  expect(long.bytes).toBeGreaterThan(2 * 256 * 1024);
});
