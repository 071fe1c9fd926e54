/** Texts are packed into blocks of this size, one after another. In bytes. */
const blockBytes = 64 * 1024;
/** So many empty blocks wait to be used again. */
const mostEmpty = 64;

interface Block {
  readonly bytes: Uint8Array;
  used: number;
  /** Texts that were packed into it and are still wanted. */
  texts: number;
}

/**
 * Texts that are kept for a while and seldom read, as UTF-8 in blocks that are used again and again: the garbage collector neither moves
 * them nor counts them as new memory. What costs most about a record is else that it outlives what it records.
 */
export class PackedTexts {
  #current: Block = newBlock();
  readonly #empty: Block[] = [];

  /** `most`: bytes that it may take. undefined: it takes more, or UTF-8 cannot tell it (half of a surrogate pair). */
  pack(text: string, most: number): PackedText | undefined {
    if (text.length > Math.min(most, blockBytes) || half.test(text)) return undefined;
    const isNarrow = blockBytes - this.#current.used < most;
    const packed = this.#packed(text, most);
    if (packed || !isNarrow) return packed;
    this.#begin();
    return this.#packed(text, most);
  }

  #packed(text: string, most: number): PackedText | undefined {
    const block = this.#current;
    const start = block.used;
    const { read, written } = encoder.encodeInto(text, block.bytes.subarray(start, start + most));
    if (read < text.length) return undefined;
    block.used += written;
    block.texts++;
    return new PackedText(block, start, block.used, this.#isEmpty);
  }

  #begin(): void {
    const full = this.#current;
    this.#current = this.#empty.pop() ?? newBlock();
    if (full.texts === 0) this.#isEmpty(full);
  }

  readonly #isEmpty = (block: Block): void => {
    if (block === this.#current) return;
    block.used = 0;
    if (this.#empty.length < mostEmpty) this.#empty.push(block);
  };
}

/** One of them. */
export class PackedText {
  #block: Block | undefined;
  readonly #start: number;
  readonly #end: number;
  readonly #isEmpty: (block: Block) => void;

  constructor(block: Block, start: number, end: number, isEmpty: (block: Block) => void) {
    this.#block = block;
    this.#start = start;
    this.#end = end;
    this.#isEmpty = isEmpty;
  }

  /** The text; "" once it was let go. */
  read(): string {
    return this.#block ? decoder.decode(this.#block.bytes.subarray(this.#start, this.#end)) : "";
  }

  /** Its place may be used again. */
  letGo(): void {
    const block = this.#block;
    if (!block) return;
    this.#block = undefined;
    if (--block.texts === 0) this.#isEmpty(block);
  }
}

function newBlock(): Block {
  return { bytes: new Uint8Array(blockBytes), used: 0, texts: 0 };
}

const half = /\p{Surrogate}/u;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
