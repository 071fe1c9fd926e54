import { Readable } from "node:stream";
import { createInflateRaw } from "node:zlib";
import { imageSize, jpegScans } from "../../../wire/core/image-size.ts";

/** The most scans of a JPEG file. Encoders write 17 at most, and a file of its own script has some dozens. */
const maxScans = 100;
/** The most pixels that all scans of a JPEG file visit together: those of 64 million pixels with 30 scans. */
const maxVisited = 2_000_000_000;

/**
 * Rejects with a reason for an image that costs much more to decode than its size says: stb_image, by which libmtmd reads images, unpacks all
 * data of a PNG before it looks at the size, and decodes as many scans of a JPEG as there are. Other files pass.
 */
export async function checkImage(data: Uint8Array): Promise<void> {
  const size = imageSize(data);
  if (!size) return;
  const [width, height] = size;
  if (data[0] === 0xff) {
    const scans = jpegScans(data);
    if (scans > maxScans || scans * width * height > maxVisited)
      throw new Error(
        `it has ${scans} scans, and at most ${maxScans} are read, of a large image fewer; save it as a baseline JPEG`,
      );
  } else if (data[0] === 0x89) await checkPng(data, width, height);
}

/** Bits of a pixel for each colour type (PNG specification, 11.2.2), for the deepest samples. */
const maxBitsPerPixel = 64;

async function checkPng(data: Uint8Array, width: number, height: number): Promise<void> {
  // Twice: an interlaced image has up to 15/8 as many rows, each with a byte for its filter.
  const most = 2 * height * (1 + (width * maxBitsPerPixel) / 8) + 1024;
  let unpacked = 0;
  // Without the head and the checksum of zlib: stb_image looks at neither.
  const inflated = Readable.from(packedData(data)).pipe(createInflateRaw()) as AsyncIterable<Uint8Array>;
  try {
    for await (const { length } of inflated) {
      unpacked += length;
      if (unpacked > most) break;
    }
  } catch (cause) {
    throw new Error("it is damaged", { cause });
  }
  if (unpacked > most) throw new Error("its data unpack to more than its size");
}

/** The contents of the IDAT chunks, without the two bytes of zlib's head, which an Apple PNG (`CgBI`) has not. */
function* packedData(data: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  let skipped = 2;
  for (let at = 8; at + 8 <= data.length;) {
    const length = view.getUint32(at);
    const type = view.getUint32(at + 4);
    if (type === 0x43674249) skipped = 0;
    if (type === 0x49454e44) return;
    if (type === 0x49444154) {
      const content = data.subarray(at + 8, at + 8 + length);
      const skips = Math.min(skipped, content.length);
      skipped -= skips;
      // In parts, so that inflating ends soon after the limit.
      for (let from = skips; from < content.length; from += 65_536) yield content.subarray(from, from + 65_536);
    }
    at += 12 + length;
  }
}
