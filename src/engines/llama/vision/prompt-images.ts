import { createHash } from "node:crypto";
import type { KnownImage } from "./encoder-process.ts";
import type { RowsChunk } from "./vision-messages.ts";

/** The rows of an image at their place in a prompt. An image of several chunks has several places. */
export interface PlacedImage extends RowsChunk {
  /** Index of the first row in the prompt. */
  readonly start: number;
  readonly image: KnownImage;
  /** Index of the first row among those of the image. */
  readonly firstRow: number;
}

/** What a cached sequence knows of the images in it: which items are rows, and how far they advance the position. */
export type ImageSpan = Pick<PlacedImage, "start" | "count" | "positions">;

/**
 * Adds an image to a prompt: its tokens, and for each row a negative number in place of a token. The numbers are made from a hash of the
 * pixels, so that prompts with the same image begin in the same way and those with another image do not. A rows' number is one of 2³¹, so a
 * whole image is as hard to confuse with another one as its hash.
 */
export function placeImage(image: KnownImage, tokens: number[], places: PlacedImage[]): void {
  let firstRow = 0;
  for (const [at, chunk] of image.chunks.entries()) {
    if ("tokens" in chunk) {
      for (const token of chunk.tokens) tokens.push(token);
      continue;
    }
    places.push({ ...chunk, start: tokens.length, image, firstRow });
    for (const number of rowNumbers(`${image.hash} ${at}`, chunk.count)) tokens.push(number);
    firstRow += chunk.count;
  }
}

function rowNumbers(name: string, count: number): Int32Array {
  const bytes = createHash("shake256", { outputLength: 4 * count })
    .update(name)
    .digest();
  return Int32Array.from({ length: count }, (_, at) => bytes.readInt32LE(4 * at) | -(2 ** 31));
}

/** Whether an item of a prompt is a row of an image. */
export function isRow(token: number): boolean {
  return token < 0;
}

/** The number that clients get in place of a row, as in llama.cpp (`LLAMA_TOKEN_NULL`). */
export const shownRow = -1;

/** The position of an item: its index, less what images before it save with M-RoPE. */
export function positionAt(index: number, images: readonly ImageSpan[]): number {
  let position = index;
  for (const { start, count, positions } of images) {
    if (start >= index) break;
    // Inside an image with M-RoPE, the position is that of its start.
    if (count !== positions) position -= start + count <= index ? count - positions : index - start;
  }
  return position;
}

/** The last index up to `index` that is not inside an image. */
export function outsideImage(index: number, images: readonly ImageSpan[]): number {
  return images.find(({ start, count }) => start < index && index < start + count)?.start ?? index;
}
