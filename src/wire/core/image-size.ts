/**
 * The width and height of a PNG, JPEG, GIF or BMP file, by its header; `undefined` for other files, and for a damaged header. Sources: the
 * PNG specification, section 11.2.2; ITU-T T.81, B.2.2; the GIF89a specification, section 18; Microsoft's `BITMAPINFOHEADER`.
 */
export function imageSize(bytes: Uint8Array): readonly [width: number, height: number] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const starts = (...magic: readonly number[]): boolean => magic.every((byte, at) => bytes[at] === byte);
  if (starts(0x89, 0x50, 0x4e, 0x47)) return bytes.length >= 24 ? [view.getUint32(16), view.getUint32(20)] : undefined;
  if (starts(0x47, 0x49, 0x46, 0x38))
    return bytes.length >= 10 ? [view.getUint16(6, true), view.getUint16(8, true)] : undefined;
  // A negative height means that the rows begin at the top.
  if (starts(0x42, 0x4d))
    return bytes.length >= 26 ? [Math.abs(view.getInt32(18, true)), Math.abs(view.getInt32(22, true))] : undefined;
  return starts(0xff, 0xd8, 0xff) ? jpegSize(bytes, view) : undefined;
}

/**
 * The number of scans of a JPEG file: of start-of-scan markers up to the end of the image (ITU-T T.81, B.1.1.2). A decoder visits all blocks
 * of the image for each of them, however few bytes it has.
 */
export function jpegScans(bytes: Uint8Array): number {
  let scans = 0;
  for (let at = bytes.indexOf(0xff, 2); at !== -1 && at + 1 < bytes.length; at = bytes.indexOf(0xff, at)) {
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) {
      at++;
      continue;
    }
    if (marker === 0xd9) break;
    if (marker === 0xda) scans++;
    // 0 is a byte 0xff of the image, 0xd0 to 0xd8 and 1 have no segment.
    const isAlone = marker <= 1 || (marker >= 0xd0 && marker <= 0xd8);
    at += isAlone ? 2 : 2 + (((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0));
  }
  return scans;
}

/** The size is in the first frame header, after other segments. */
function jpegSize(bytes: Uint8Array, view: DataView): readonly [number, number] | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    // Bytes that fill the space before a marker.
    if (marker === 0xff) {
      at++;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return [view.getUint16(at + 7), view.getUint16(at + 5)];
    at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}
