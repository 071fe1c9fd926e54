import fc from "fast-check";
import { expect, test } from "vitest";
import type { KnownImage } from "./encoder-process.ts";
import { isRow, outsideImage, placeImage, positionAt, type PlacedImage } from "./prompt-images.ts";
import type { ImageChunk } from "./vision-messages.ts";

function image(hash: string, chunks: readonly ImageChunk[]): KnownImage {
  return { hash, chunks, data: new Uint8Array(), param: "image", owner: undefined };
}

const chunk = fc.oneof(
  fc.array(fc.nat(500), { maxLength: 3 }).map((tokens): ImageChunk => ({ tokens: Int32Array.from(tokens) })),
  fc
    .tuple(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 20 }))
    .map(([count, positions]): ImageChunk => ({ count, positions: Math.min(count, positions), nonCausal: false })),
);
const prompt = fc.array(
  fc.oneof(
    fc.array(fc.nat(500), { maxLength: 4 }),
    fc.tuple(fc.constantFrom("a", "b"), fc.array(chunk, { maxLength: 4 })),
  ),
  { maxLength: 6 },
);

test("for every prompt: rows are where their places are, and positions advance by what each part takes", () => {
  fc.assert(
    fc.property(prompt, (parts) => {
      const tokens: number[] = [];
      const places: PlacedImage[] = [];
      let position = 0;
      for (const part of parts) {
        if (typeof part[0] !== "string") {
          tokens.push(...(part as number[]));
          position += part.length;
        } else {
          const [hash, chunks] = part as [string, ImageChunk[]];
          placeImage(image(hash, chunks), tokens, places);
          for (const one of chunks) position += "tokens" in one ? one.tokens.length : one.positions;
        }
        expect(positionAt(tokens.length, places)).toBe(position);
      }
      const inPlaces = (at: number): boolean => places.some(({ start, count }) => start <= at && at < start + count);
      expect(tokens.map(isRow)).toEqual(tokens.map((_, at) => inPlaces(at)));
      for (let at = 0; at <= tokens.length; at++) {
        const outside = outsideImage(at, places);
        expect(outside).toBeLessThanOrEqual(at);
        expect(places.every(({ start, count }) => outside <= start || start + count <= outside)).toBe(true);
        expect(positionAt(at, places)).toBeGreaterThanOrEqual(positionAt(Math.max(0, at - 1), places));
      }
    }),
  );
});

test("the same image has the same rows; another image, and another part of it, has others", () => {
  const rows = (hash: string, chunks: readonly ImageChunk[]): number[] => {
    const tokens: number[] = [];
    placeImage(image(hash, chunks), tokens, []);
    return tokens;
  };
  const four = { count: 4, positions: 4, nonCausal: false };
  expect(rows("a", [four])).toEqual(rows("a", [four]));
  expect(rows("a", [four])[0]).not.toBe(rows("b", [four])[0]);
  const [first, , , , second] = rows("a", [four, four]);
  expect(first).not.toBe(second);
});
