/**
 * The key-value pairs at the start of a GGUF (version 2 or 3, little-endian), as its specification lays them out
 * (ggml, docs/gguf.md). `start` is the file's beginning, as much of it as was read; undefined: it does not hold all pairs yet. Of lists,
 * short ones that `keeps` accepts are kept; of the others only the length, since a vocabulary is most of a header. Throws an Error for
 * what is no GGUF.
 */
export function parseGgufMetadata(start: Buffer, keeps: (key: string) => boolean): Map<string, unknown> | undefined {
  return whole(() => new Reader(start).pairs(keeps));
}

/** A GGUF up to its tensors' data. */
export interface GgufHeader {
  readonly pairs: Map<string, unknown>;
  /** Where the data of each tensor begins, by its name: bytes from the beginning of all data. */
  readonly tensors: ReadonlyMap<string, number>;
}

/** Reads the pairs as `parseGgufMetadata` does, and the list of tensors after them; undefined if `start` ends before the list does. */
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

/** The bytes that were read end within a value. */
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
/** No list with a value for each layer is longer; a damaged file may say that it has billions. */
const maxListLength = 4096;
/** Bytes of a value of each type, by its code; texts and lists have no fixed size. */
const sizes: readonly (number | undefined)[] = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

function sizeOf(type: number): number {
  const size = sizes[type];
  if (size === undefined) throw new Error(`unknown type ${type} of a GGUF value`);
  return size;
}
