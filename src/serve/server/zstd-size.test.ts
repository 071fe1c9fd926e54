import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxZstdSize } from "./zstd-size.ts";

const magic = [0x28, 0xb5, 0x2f, 0xfd];
const mib = 2 ** 20;

type Block = { readonly type: 0 | 1 | 2; readonly size: number };

/** A frame with a window of 128 KiB, whose compressed blocks have any content. */
function frame(blocks: readonly Block[], hasChecksum: boolean): number[] {
  const bytes = [...magic, hasChecksum ? 4 : 0, 7 << 3];
  for (const [at, { type, size }] of blocks.entries()) {
    const header = (size << 3) | (type << 1) | (at === blocks.length - 1 ? 1 : 0);
    bytes.push(header & 255, (header >> 8) & 255, header >> 16, ...Array(type === 1 ? 1 : size).fill(65));
  }
  return hasChecksum ? [...bytes, 1, 2, 3, 4] : bytes;
}

const block = fc.record({ type: fc.constantFrom(0, 1, 2), size: fc.nat(300) }) as fc.Arbitrary<Block>;
const frames = fc.array(fc.tuple(fc.array(block, { minLength: 1, maxLength: 5 }), fc.boolean()), { maxLength: 4 });

describe("what a Zstandard text inflates to at most", () => {
  test("it is the sum of its blocks, over all frames", () => {
    fc.assert(
      fc.property(frames, (list) => {
        const bytes = Uint8Array.from(list.flatMap(([blocks, sum]) => frame(blocks, sum)));
        const most = list.flatMap(([blocks]) => blocks).map(({ type, size }) => (type === 2 ? 128 * 1024 : size));
        expect(maxZstdSize(bytes, 8 * mib)).toBe(most.reduce((sum, size) => sum + size, 0));
      }),
    );
  });

  test("a text that is cut has none, and no text throws", () => {
    const whole = Uint8Array.from(
      frame(
        [
          { type: 1, size: 9 },
          { type: 0, size: 5 },
        ],
        true,
      ),
    );
    for (let end = 1; end < whole.length; end++) expect(maxZstdSize(whole.subarray(0, end), mib)).toBeNull();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (rest) => {
        const size = maxZstdSize(Uint8Array.from([...magic, ...rest]), mib);
        if (size !== null) expect(size).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  test("skippable frames add nothing; a header's own size limits its blocks", () => {
    const skipped = [0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    // Single segment, 5 bytes, in one compressed block.
    const single = [...magic, 0x20, 5, (2 << 3) | (2 << 1) | 1, 0, 0, 65, 65];
    expect(maxZstdSize(Uint8Array.from([...skipped, ...single]), mib)).toBe(5);
  });

  test.each([
    ["a window over the limit", [...magic, 0, 20 << 3, 1, 0, 0]],
    ["a dictionary", [...magic, 0x21, 7, 0, 1, 0, 0]],
    ["a block of no known type", [...magic, 0, 0, 7, 0, 0]],
    ["another magic number", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]],
  ])("%s is refused", (_, bytes) => {
    expect(maxZstdSize(Uint8Array.from(bytes), 8 * mib)).toBeNull();
  });
});
