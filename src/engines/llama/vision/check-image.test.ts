import { crc32, deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { randomPicture } from "../../../../test/fixtures/random-vision.ts";
import { inflatingPng, manyScans } from "../../../../test/support/hostile-files.ts";
import { checkImage } from "./check-image.ts";

test("ordinary images pass", async () => {
  await checkImage(randomPicture(96, 64, 1));
  await checkImage(randomPicture(1, 1, 1));
  await checkImage(manyScans(64, 20));
  await checkImage(Buffer.from("GIF89a\x2c\x01\xc8\0", "latin1"));
});

// stb_image unpacks all data of a PNG before it looks at the size: 3.6 MB took 3.4 GB of memory. We looked at the header only, and our large
// images had large headers.
test("a PNG whose data unpack to more than its size is refused, and no more is unpacked", async () => {
  const bomb = inflatingPng(1024);
  const before = process.memoryUsage().rss;
  await expect(checkImage(bomb)).rejects.toThrow("its data unpack to more than its size");
  expect(process.memoryUsage().rss - before).toBeLessThan(200 * 2 ** 20);
});

test("an interlaced PNG, and one in many chunks, have as much data as their size allows", async () => {
  for (const interlaced of [0, 1]) await checkImage(png(1, 1000, interlaced, 1000 * 2 * 2));
});

test("damaged data are refused", async () => {
  const bytes = randomPicture(96, 64, 1);
  bytes.fill(0xff, 60, 90);
  await expect(checkImage(bytes)).rejects.toThrow("it is damaged");
});

// Ten minutes were the only limit on the work for an image, and every image waits for the one before it.
test("a JPEG with more scans than any encoder writes is refused", async () => {
  await expect(checkImage(manyScans(64, 101))).rejects.toThrow("it has 102 scans");
  await expect(checkImage(manyScans(8000, 60))).rejects.toThrow("it has 61 scans");
});

function png(width: number, height: number, interlaced: number, unpacked: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 0, 0, 0, interlaced], 8);
  const data = deflateSync(Buffer.alloc(unpacked));
  const chunk = (type: string, content: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), content]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(content.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const parts = Array.from({ length: data.length }, (_, at) => chunk("IDAT", data.subarray(at, at + 1)));
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    chunk("IHDR", header),
    ...parts,
    chunk("IEND", Buffer.alloc(0)),
  ]);
}
