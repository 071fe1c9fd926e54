import { crc32, deflateRawSync, deflateSync } from "node:zlib";
import { docx, zip } from "./office-files.ts";

/* Small files that cost their reader much. Each is generated, and named for what it does. */

/** A spreadsheet of some kilobytes whose cells repeat one shared text: together hundreds of millions of characters. */
export function repeatedSharedText(characters = 100_000, cells = 5200): Buffer {
  const row = `<row>${'<c t="s"><v>0</v></c>'.repeat(cells)}</row>`;
  return zip({
    "xl/workbook.xml": "<workbook/>",
    "xl/sharedStrings.xml": `<sst><si><t>${"字".repeat(characters)}</t></si></sst>`,
    "xl/worksheets/sheet1.xml": `<worksheet><sheetData>${row}</sheetData></worksheet>`,
  });
}

/** A PDF of one page whose content is packed twice, and unpacks to `bytes` spaces: 10 GB fit into 10 kB. */
export function twiceFlatePdf(mebibytes: number): Buffer {
  const packed = deflateSync(deflateZeros(mebibytes), { level: 9 });
  return pdfOf(packed, "/Filter [ /FlateDecode /FlateDecode ]");
}

/** A PDF of one page whose text has `lines` lines of 80 characters. */
export function longPdf(lines: number): Buffer {
  const line = `(${"word ".repeat(16)}) Tj 0 0 Td `;
  return pdfOf(deflateSync(`BT /F1 12 Tf 72 720 Td ${line.repeat(lines)} ET`), "/Filter /FlateDecode");
}

/** A PDF of one page that takes long to read and little memory: about 80,000 operations a second. */
export function slowPdf(operations: number): Buffer {
  const content = deflateSync(Buffer.from("q 1 0 0 1 1 1 cm Q\n".repeat(operations)), { level: 9 });
  return pdfOf(content, "/Filter /FlateDecode");
}

function pdfOf(content: Buffer, filter: string): Buffer {
  const objects = [
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
    "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
  ];
  const parts: Buffer[] = [Buffer.from("%PDF-1.4\n")];
  const offsets: number[] = [];
  let length = 9;
  const add = (bytes: Buffer): void => {
    parts.push(bytes);
    length += bytes.length;
  };
  for (const [at, object] of objects.entries()) {
    offsets.push(length);
    add(Buffer.from(`${at + 1} 0 obj\n${object}\nendobj\n`));
  }
  offsets.push(length);
  add(Buffer.from(`5 0 obj\n<< /Length ${content.length} ${filter} >>\nstream\n`));
  add(content);
  add(Buffer.from("\nendstream\nendobj\n"));
  const rows = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  add(
    Buffer.from(
      `xref\n0 6\n0000000000 65535 f \n${rows}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${length}\n%%EOF\n`,
    ),
  );
  return Buffer.concat(parts);
}

/** A zlib stream of spaces, made without them in memory: 1,032 bytes of it are one. */
function deflateZeros(mebibytes: number): Buffer {
  const mebibyte = Buffer.alloc(2 ** 20, 32);
  // Blocks that each end at a byte, and the last one.
  const block = deflateRawSync(mebibyte, { finishFlush: 3, level: 9 });
  const end = Buffer.from([0x03, 0x00]);
  // The checksum does not belong to it: readers of PDF do not look at it.
  return Buffer.concat([
    Buffer.from([0x78, 0xda]),
    ...Array.from({ length: mebibytes }, () => block),
    end,
    Buffer.alloc(4),
  ]);
}

/**
 * A Word file with two directories: the classic one names a small document, and that of ZIP64, which JSZip prefers, one that unpacks to
 * `mebibytes`.
 */
export function zip64Docx(mebibytes: number): Buffer {
  const small = docx("Hello");
  const text = Buffer.from(
    `<?xml version="1.0"?><w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body><w:p><w:r><w:t>`,
  );
  const close = Buffer.from("</w:t></w:r></w:p></w:body></w:document>");
  const block = deflateRawSync(Buffer.alloc(2 ** 20, 97), { finishFlush: 3, level: 9 });
  const packed = Buffer.concat([
    deflateRawSync(text, { finishFlush: 3 }),
    ...Array.from({ length: mebibytes }, () => block),
    deflateRawSync(close),
  ]);
  const size = text.length + mebibytes * 2 ** 20 + close.length;
  return withZip64Directory(small, "word/document.xml", packed, size);
}

/** Appends another directory, in which `name` has other content, with the records of ZIP64 that lead to it (APPNOTE.TXT 4.3.14, 4.3.15). */
function withZip64Directory(archive: Buffer, name: string, packed: Buffer, size: number): Buffer {
  const end = archive.lastIndexOf("PK\x05\x06");
  const [count, length, start] = [
    archive.readUInt16LE(end + 10),
    archive.readUInt32LE(end + 12),
    archive.readUInt32LE(end + 16),
  ];
  const directory = Buffer.from(archive.subarray(start, start + length));
  const files = archive.subarray(0, start);
  const path = Buffer.from(name);
  const local = Buffer.alloc(30);
  local.write("PK\x03\x04", 0, "latin1");
  local.writeUInt16LE(20, 4);
  local.writeUInt16LE(8, 8);
  local.writeUInt32LE(packed.length, 18);
  local.writeUInt32LE(size, 22);
  local.writeUInt16LE(path.length, 26);
  const added = Buffer.concat([local, path, packed]);
  const other = Buffer.from(directory);
  for (let at = 0, left = count; left > 0; left--) {
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => other.readUInt16LE(at + offset));
    if (other.toString("utf8", at + 46, at + 46 + (nameLength ?? 0)) === name) {
      other.writeUInt32LE(packed.length, at + 20);
      other.writeUInt32LE(size, at + 24);
      other.writeUInt32LE(files.length, at + 42);
    }
    at += 46 + (nameLength ?? 0) + (extra ?? 0) + (comment ?? 0);
  }
  const classicAt = files.length + added.length;
  const otherAt = classicAt + directory.length;
  const record = Buffer.alloc(56);
  record.write("PK\x06\x06", 0, "latin1");
  record.writeBigUInt64LE(44n, 4);
  record.writeUInt16LE(45, 12);
  record.writeUInt16LE(45, 14);
  record.writeBigUInt64LE(BigInt(count), 24);
  record.writeBigUInt64LE(BigInt(count), 32);
  record.writeBigUInt64LE(BigInt(other.length), 40);
  record.writeBigUInt64LE(BigInt(otherAt), 48);
  const locator = Buffer.alloc(20);
  locator.write("PK\x06\x07", 0, "latin1");
  locator.writeBigUInt64LE(BigInt(otherAt + other.length), 8);
  locator.writeUInt32LE(1, 16);
  const classic = Buffer.alloc(22);
  classic.write("PK\x05\x06", 0, "latin1");
  // One member says that the record of ZIP64 is to be read, and is not needed to find the files: the number of this disk.
  classic.writeUInt16LE(0xffff, 4);
  classic.writeUInt16LE(count, 8);
  classic.writeUInt16LE(count, 10);
  classic.writeUInt32LE(directory.length, 12);
  classic.writeUInt32LE(classicAt, 16);
  return Buffer.concat([files, added, directory, other, record, locator, classic]);
}

/** A PNG whose header says 10 × 10 pixels, and whose data unpack to `mebibytes`. */
export function inflatingPng(mebibytes: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(10, 0);
  header.writeUInt32BE(10, 4);
  header.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    pngChunk("IHDR", header),
    pngChunk("IDAT", deflateZeros(mebibytes)),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

function pngChunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length, 0);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), 8 + data.length);
  return chunk;
}

/** A grey progressive JPEG of `side` × `side` pixels with `scans` scans, each of which refines every coefficient (ITU-T T.81, annex G). */
export function manyScans(side: number, scans: number): Buffer {
  const segment = (marker: number, ...data: readonly number[]): number[] => [
    0xff,
    marker,
    (data.length + 2) >> 8,
    (data.length + 2) & 255,
    ...data,
  ];
  const blocks = Math.ceil(side / 8) ** 2;
  // Code 0: DC of no bits, and for AC "all further blocks end here, of 2¹⁴": EOB14, with 14 bits of how many more.
  const head = [
    0xff,
    0xd8,
    ...segment(0xdb, 0, ...Array.from({ length: 64 }, () => 1)),
    ...segment(0xc2, 8, side >> 8, side & 255, side >> 8, side & 255, 1, 1, 0x11, 0),
    ...segment(0xc4, 0x00, 1, ...Array.from({ length: 15 }, () => 0), 0),
    ...segment(0xc4, 0x10, 1, ...Array.from({ length: 15 }, () => 0), 0xe0),
  ];
  const dc = [...segment(0xda, 1, 1, 0x00, 0, 0, 0), ...Array.from({ length: Math.ceil(blocks / 8) }, () => 0)];
  const runs = Math.ceil(blocks / 2 ** 14);
  // 15 bits for each run: the code, and 14 bits that are 0.
  const ac = [
    ...segment(0xda, 1, 1, 0x00, 1, 63, 0x10),
    ...Array.from({ length: Math.ceil((runs * 15) / 8) }, () => 0),
  ];
  const scan = Buffer.from(ac);
  return Buffer.concat([
    Buffer.from(head),
    Buffer.from(dc),
    ...Array.from({ length: scans }, () => scan),
    Buffer.from([0xff, 0xd9]),
  ]);
}
