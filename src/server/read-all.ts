import { bodyTooLarge } from "../wire/failures.ts";

/**
 * The whole of a byte stream. Rejects with 413 beyond `limit` bytes, and stops reading then; with what `failed` makes of the cause when
 * the stream breaks.
 */
export async function readAll(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  failed: (cause: unknown) => Error,
): Promise<Uint8Array> {
  const reader = stream.getReader();
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw failed(cause);
    });
    if (done) return joined(pieces, size);
    size += value.length;
    if (size > limit) {
      reader.cancel().catch(() => {});
      throw bodyTooLarge(limit);
    }
    pieces.push(value);
  }
}

/** `pieces` as one array; `size` is the sum of their lengths. */
export function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = pieces;
  if (first && pieces.length === 1) return first;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
