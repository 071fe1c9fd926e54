/** The bytes of a Zstandard block, at most. Source: RFC 8878, section 3.1.1.2.4. */
const maxBlock = 128 * 1024;
const magic = 0xfd2fb528;
const skippable = 0x184d2a50;

/**
 * The number of bytes that a Zstandard text can inflate to at most, from the headers of its frames and blocks; null if it is damaged, needs a
 * dictionary, or a window of more than `maxWindow` bytes. Linear in the number of blocks. Source: RFC 8878, section 3.1.
 */
export function maxZstdSize(bytes: Uint8Array, maxWindow: number): number | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let size = 0;
  let at = 0;
  try {
    while (at < bytes.length) {
      const word = view.getUint32(at, true);
      if ((word & 0xfffffff0) === skippable) {
        at += 8 + view.getUint32(at + 4, true);
        continue;
      }
      if (word !== magic) return null;
      const frame = frameAt(view, at + 4);
      if (!frame || frame.window > maxWindow) return null;
      const blocks = blocksAt(view, frame.end, Math.min(maxBlock, frame.window));
      if (!blocks) return null;
      size += Math.min(blocks.size, frame.size ?? Infinity);
      at = blocks.end + (frame.hasChecksum ? 4 : 0);
    }
  } catch (error) {
    // Reading past the end.
    if (error instanceof RangeError) return null;
    throw error;
  }
  return at === bytes.length ? size : null;
}

interface Frame {
  readonly window: number;
  /** The size of the content, if the header has it. */
  readonly size: number | undefined;
  readonly hasChecksum: boolean;
  readonly end: number;
}

/** Reads the header of a frame after its magic number. */
function frameAt(view: DataView, start: number): Frame | null {
  const descriptor = view.getUint8(start);
  const isSingle = (descriptor & 0x20) !== 0;
  let at = start + 1;
  let window = 0;
  if (!isSingle) {
    const byte = view.getUint8(at++);
    const base = 2 ** (10 + (byte >> 3));
    window = base + (base / 8) * (byte & 7);
  }
  // A dictionary that the sender and this server share: there is none.
  const idSize = [0, 1, 2, 4][descriptor & 3] ?? 0;
  for (let end = at + idSize; at < end; at++) if (view.getUint8(at) !== 0) return null;
  let size: number | undefined;
  switch (descriptor >> 6) {
    case 0:
      if (isSingle) size = view.getUint8(at++);
      break;
    case 1:
      size = view.getUint16(at, true) + 256;
      at += 2;
      break;
    case 2:
      size = view.getUint32(at, true);
      at += 4;
      break;
    default:
      size = Number(view.getBigUint64(at, true));
      at += 8;
  }
  if (isSingle) window = size ?? 0;
  return { window, size, hasChecksum: (descriptor & 4) !== 0, end: at };
}

/** Reads the headers of a frame's blocks, and adds the bytes that they inflate to at most. */
function blocksAt(
  view: DataView,
  start: number,
  largest: number,
): { readonly size: number; readonly end: number } | null {
  let size = 0;
  for (let at = start; ;) {
    const header = view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
    const isLast = (header & 1) !== 0;
    const type = (header >> 1) & 3;
    const length = header >> 3;
    at += 3;
    if (type === 3 || (type !== 2 && length > largest)) return null;
    size += type === 2 ? largest : length;
    at += type === 1 ? 1 : length;
    if (isLast) return { size, end: at };
  }
}
