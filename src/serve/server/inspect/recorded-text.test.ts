import fc from "fast-check";
import { expect, test } from "vitest";
import { maskedHeaders, maskedTape, Tape } from "./recorded-text.ts";
import { Mask } from "../mask.ts";

interface Piece {
  readonly text: string;
  readonly bytes: number;
}

const chunks = fc.array(fc.record({ text: fc.string({ maxLength: 12 }), bytes: fc.integer({ min: 1, max: 60 }) }), {
  maxLength: 60,
});

function newTape(limit: number): Tape<Piece> {
  return new Tape(limit, { bytes: ({ bytes }) => bytes, characters: ({ text }) => text.length });
}

test("holds at most its limit, the beginning and the end, and counts what is between them", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 400 }), chunks, (limit, added) => {
      const tape = newTape(limit);
      let bytes = 0;
      for (const [at, chunk] of added.entries()) {
        bytes += tape.add(at, chunk);
        expect(tape.bytes).toBe(bytes);
        expect(tape.bytes).toBeLessThanOrEqual(limit);
      }
      const { chunks: kept, left_out: leftOut } = tape.contents((ms, { text }) => [ms, text]);
      const { after, chunks: count, characters } = leftOut ?? { after: added.length, chunks: 0, characters: 0 };
      const all = added.map(({ text }, at) => [at, text]);
      expect(kept).toEqual([...all.slice(0, after), ...all.slice(after + count)]);
      const between = added.slice(after, after + count).map(({ text }) => text);
      expect(characters).toBe(between.join("").length);
    }),
  );
});

test("keeps the newest where it fits at all", () => {
  fc.assert(
    fc.property(fc.integer({ min: 80, max: 400 }), chunks, (limit, added) => {
      const tape = newTape(limit);
      for (const [at, chunk] of added.entries()) tape.add(at, chunk);
      // The end has three quarters of the limit, and no chunk is longer than that here.
      if (added.length > 0) expect(tape.contents((ms) => ms).chunks.at(-1)).toBe(added.length - 1);
    }),
  );
});

test("of a long stream, the first quarter and the last three are kept", () => {
  const tape = newTape(1000);
  for (let at = 0; at < 100_000; at++) tape.add(at, { text: "x", bytes: 10 });
  const { chunks: kept, left_out: leftOut } = tape.contents((ms) => ms);
  expect(kept).toHaveLength(100);
  expect(kept.slice(24, 26)).toEqual([24, 99_925]);
  expect(leftOut).toEqual({ after: 25, chunks: 99_900, characters: 99_900 });
});

const mask = new Mask(["sk-secret-0123456789"]);

test("a secret is masked however it is cut, and on its side of what was left out", () => {
  const chunks = ["data: sk-sec", "ret-012345", "6789!", " then"].map((text, ms) => ({ ms, text }));
  const left_out = { after: 3, chunks: 7, characters: 70 };
  expect(maskedTape({ chunks, left_out }, mask)).toEqual({
    tape: {
      chunks: [
        { ms: 0, text: "data: [key]!" },
        { ms: 3, text: " then" },
      ],
      left_out: { after: 1, chunks: 7, characters: 70 },
    },
    isChanged: true,
  });
});

test("a tape without a secret is unchanged", () => {
  const tape = { chunks: [{ ms: 1, text: "data: sk-sec" }] };
  expect(maskedTape(tape, mask)).toEqual({ tape, isChanged: false });
});

test("headers with keys are masked; headers about rate limits are not", () => {
  const headers = [
    ["Authorization", "Bearer sk-somebody"],
    ["x-api-key", "abc"],
    ["Cookie", "session=1"],
    ["Sec-WebSocket-Protocol", "realtime, openai-insecure-api-key.sk-somebody"],
    ["x-ratelimit-remaining-tokens", "17"],
    ["x-note", "has sk-secret-0123456789 in it"],
    ["accept", "*/*"],
  ] as const;
  expect(maskedHeaders(headers, mask)).toEqual([
    ["Authorization", "Bearer [key]"],
    ["x-api-key", "[key]"],
    ["Cookie", "[key]"],
    ["Sec-WebSocket-Protocol", "[key]"],
    ["x-ratelimit-remaining-tokens", "17"],
    ["x-note", "has [key] in it"],
    ["accept", "*/*"],
  ]);
});
