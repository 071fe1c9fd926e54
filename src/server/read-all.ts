import { bodyTooLarge } from "../apis/failures.ts";
import { bodyTooSlow } from "./body-budget.ts";
import type { BodyLease } from "./body-budget.ts";

/**
 * The whole of a byte stream, for which `lease` has begun. Rejects with 413 beyond `limit` bytes, and stops reading then; with 503 or 408
 * where the lease ends it; with what `failed` makes of the cause when the stream breaks.
 */
export async function readAll(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  lease: BodyLease,
  failed: (cause: unknown) => Error,
): Promise<Uint8Array> {
  const reader = stream.getReader();
  const stop = (): void => void reader.cancel().catch(() => {});
  let isTooSlow = false;
  lease.onTooSlow = () => {
    isTooSlow = true;
    stop();
  };
  const pieces: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch((cause: unknown) => {
      throw failed(cause);
    });
    if (isTooSlow) throw bodyTooSlow();
    if (done) {
      lease.complete(size);
      return joined(pieces, size);
    }
    size += value.length;
    if (size > limit) {
      stop();
      throw bodyTooLarge(limit);
    }
    pieces.push(value);
    const wait = lease.arrived(value.length);
    if (wait)
      await wait.catch((error: unknown) => {
        stop();
        throw error;
      });
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
