/**
 * Parses the key-value pairs of a GGUF file (version 2 or 3, little-endian). Source: ggml, docs/gguf.md. Returns undefined if `start`, the
 * beginning of the file, ends before all pairs. A list that is long or that `keeps` rejects is represented by its length, since most of a
 * header is the vocabulary. Throws an `Error` for a file that is not GGUF.
 */
export function parseGgufMetadata(start: Buffer, keeps: (key: string) => boolean): Map<string, unknown> | undefined {
  return whole(() => new Reader(start).pairs(keeps));
}

/** The header of a GGUF file. */
export interface GgufHeader {
  readonly pairs: Map<string, unknown>;
  /** The offset of each tensor, by name, in bytes from the start of the tensor data. */
  readonly tensors: ReadonlyMap<string, number>;
}

/** Parses the pairs like `parseGgufMetadata`, and the tensor list. Returns undefined if `start` ends before the end of the list. */
export function parseGgufHeader(start: Buffer, keeps: (key: string) => boolean): GgufHeader | undefined {
  return whole(() => {
    const reader = new Reader(start);
    const pairs = reader.pairs(keeps);
    return { pairs, tensors: reader.tensors() };
  });
}

function whole<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Unfinished) return undefined;
    throw error;
  }
}

/** The input ends within a value. */
class Unfinished extends Error {}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;
  #tensors = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  pairs(keeps: (key: string) => boolean): Map<string, unknown> {
    if (this.#take(4).toString("latin1") !== "GGUF") throw new Error("it is not a GGUF file");
    const version = this.#take(4).readUInt32LE();
    if (version !== 2 && version !== 3) throw new Error(`GGUF version ${version} is not supported, only 2 and 3`);
    this.#tensors = this.#count();
    const pairs = new Map<string, unknown>();
    for (let left = this.#count(); left > 0; left--) {
      const key = this.#text();
      const type = this.#take(4).readUInt32LE();
      pairs.set(key, type === list ? this.#list(key, keeps) : this.#value(type));
    }
    return pairs;
  }

  tensors(): Map<string, number> {
    const offsets = new Map<string, number>();
    for (let left = this.#tensors; left > 0; left--) {
      const name = this.#text();
      const dimensions = this.#take(4).readUInt32LE();
      this.#take(dimensions * 8 + 4);
      offsets.set(name, this.#count());
    }
    return offsets;
  }

  #list(key: string, keeps: (key: string) => boolean): unknown {
    const type = this.#take(4).readUInt32LE();
    const length = this.#count();
    if (length <= maxListLength && keeps(key)) {
      const items: unknown[] = [];
      for (let left = length; left > 0; left--) items.push(this.#value(type));
      return items;
    }
    if (type === text) for (let left = length; left > 0; left--) this.#take(this.#count());
    else this.#take(length * sizeOf(type));
    return length;
  }

  #value(type: number): unknown {
    if (type === text) return this.#text();
    const bytes = this.#take(sizeOf(type));
    switch (type) {
      case 0:
        return bytes.readUInt8();
      case 1:
        return bytes.readInt8();
      case 2:
        return bytes.readUInt16LE();
      case 3:
        return bytes.readInt16LE();
      case 4:
        return bytes.readUInt32LE();
      case 5:
        return bytes.readInt32LE();
      case 6:
        return bytes.readFloatLE();
      case 7:
        return bytes.readUInt8() !== 0;
      case 10:
        return Number(bytes.readBigUInt64LE());
      case 11:
        return Number(bytes.readBigInt64LE());
      default:
        return bytes.readDoubleLE();
    }
  }

  #text(): string {
    return this.#take(this.#count()).toString("utf8");
  }

  #count(): number {
    return Number(this.#take(8).readBigUInt64LE());
  }

  #take(bytes: number): Buffer {
    if (bytes > this.#bytes.length - this.#at) throw new Unfinished();
    this.#at += bytes;
    return this.#bytes.subarray(this.#at - bytes, this.#at);
  }
}

const text = 8;
const list = 9;
/** Lists with a value for each layer are shorter; a damaged file may claim billions. */
const maxListLength = 4096;
/** Size of a value in bytes, by type code; undefined for strings and lists. */
const sizes: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

function sizeOf(type: number): number {
  const size = sizes[type];
  if (size === undefined) throw new Error(`unknown type ${type} of a GGUF value`);
  return size;
}
