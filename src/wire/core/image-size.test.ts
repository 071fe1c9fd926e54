import fc from "fast-check";
import { expect, test } from "vitest";
import { imageSize, jpegScans } from "./image-size.ts";

const bytes = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

test.each([
  ["PNG", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x0b\xb8\0\0\0\xc8", [3000, 200]],
  ["GIF", "GIF89a\x2c\x01\xc8\0", [300, 200]],
  ["BMP", `BM${"\0".repeat(16)}\x2c\x01\0\0\x38\xff\xff\xff`, [300, 200]],
  ["JPEG", "\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x11\x08\0\xc8\x01\x2c\x03", [300, 200]],
  ["WebP", "RIFF\x1a\0\0\0WEBPVP8L", undefined],
  ["a JPEG without a frame", "\xff\xd8\xff\xe0\0\x04ab", undefined],
])("the size of %s", (_, file, expected) => {
  expect(imageSize(bytes(file))).toEqual(expected);
});

test("the scans of a JPEG are counted up to its end, outside of segments and of the image's own bytes", () => {
  const scan = "\xff\xda\0\x08\x01\x01\0\0\x3f\0";
  const thumbnail = "\xff\xe1\0\x06\xff\xda\xff\xda";
  expect(jpegScans(bytes(`\xff\xd8${thumbnail}${scan}a\xff\0b\xff\xd0c\xff\xff${scan}d\xff\xd9\xff\xda\0\x02`))).toBe(
    2,
  );
  expect(jpegScans(bytes("\xff\xd8"))).toBe(0);
});

test("damaged files have a size or none, and end", () => {
  const magic = fc.constantFrom("\xff\xd8\xff", "\x89PNG", "GIF8", "BM");
  fc.assert(
    fc.property(magic, fc.uint8Array({ maxLength: 80 }), (start, rest) => {
      const size = imageSize(Uint8Array.from([...bytes(start), ...rest]));
      expect(size === undefined || size.length === 2).toBe(true);
    }),
  );
});
