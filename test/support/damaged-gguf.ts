import fc from "fast-check";

/** A way to spoil a file, with words for it. */
export interface Damage {
  readonly what: string;
  readonly spoil: (file: Buffer) => Buffer;
}

/** Where the parts of a GGUF begin: its counts, each key-value pair, each tensor's description, the data, and its end. */
export function ggufParts(file: Buffer): readonly number[] {
  const starts = [0, 4, 8];
  let at = 24;
  const read = (bytes: 4 | 8): number => {
    at += bytes;
    return bytes === 4 ? file.readUInt32LE(at - 4) : Number(file.readBigUInt64LE(at - 8));
  };
  const pass = (bytes: number): void => {
    at += bytes;
  };
  const passValue = (type: number): void => {
    if (type === text) return pass(read(8));
    if (type !== list) return pass(sizes[type] ?? 0);
    const items = read(4);
    for (let left = read(8); left > 0; left--) passValue(items);
  };
  for (let pairs = Number(file.readBigUInt64LE(16)); pairs > 0; pairs--) {
    starts.push(at);
    pass(read(8));
    passValue(read(4));
  }
  for (let tensors = Number(file.readBigUInt64LE(8)); tensors > 0; tensors--) {
    starts.push(at);
    pass(read(8));
    pass(8 * read(4) + 12);
  }
  return [...starts, at, Math.ceil(at / 32) * 32, file.length];
}

/** Codes of values (ggml, docs/gguf.md), and the sizes of those that have one. */
const text = 8;
const list = 9;
const sizes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];

/**
 * A file that is cut off, or has some of its bits or bytes changed: most of them in its header, where they do most harm, and many at the
 * beginning of a part, where lengths stand.
 */
export function damage(file: Buffer): fc.Arbitrary<Damage> {
  const parts = ggufParts(file);
  const header = parts.at(-2) ?? file.length;
  const nearPart = fc.tuple(fc.constantFrom(...parts), fc.integer({ min: -4, max: 24 })).map(([at, by]) => at + by);
  const place = fc
    .oneof(
      { weight: 3, arbitrary: nearPart },
      { weight: 3, arbitrary: fc.nat(header) },
      { weight: 1, arbitrary: fc.nat(file.length) },
    )
    .map((at) => Math.min(file.length - 1, Math.max(0, at)));
  const cut = place.map((at) => ({ what: `cut at ${at}`, spoil: (whole: Buffer) => whole.subarray(0, at) }));
  const bits = fc.array(fc.tuple(place, fc.nat(7)), { minLength: 1, maxLength: 8 }).map((flips) => ({
    what: `bits flipped: ${JSON.stringify(flips)}`,
    spoil: (whole: Buffer) => {
      const changed = Buffer.from(whole);
      for (const [at, bit] of flips) changed[at] = (changed[at] ?? 0) ^ (1 << bit);
      return changed;
    },
  }));
  const oneByte = fc.tuple(fc.constantFrom(0, 0x7f, 0xff), fc.integer({ min: 1, max: 16 }));
  const run = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 64 }),
    oneByte.map(([byte, length]) => new Uint8Array(length).fill(byte)),
  );
  const bytes = fc.tuple(place, run).map(([at, others]) => ({
    what: `bytes at ${at}: ${Buffer.from(others).toString("hex")}`,
    spoil: (whole: Buffer) => {
      const changed = Buffer.from(whole);
      changed.set(others.subarray(0, changed.length - at), at);
      return changed;
    },
  }));
  return fc.oneof(cut, bits, bytes);
}
