import { closeSync, openSync, readSync } from "node:fs";
import type { ChatTemplateOptions } from "../templates/chat-template.ts";

/** Whether the file begins as a GGUF does. */
export function isGguf(file: string): boolean {
  const descriptor = openSync(file, "r");
  try {
    const magic = Buffer.alloc(4);
    readSync(descriptor, magic, 0, 4, 0);
    return magic.toString("latin1") === "GGUF";
  } finally {
    closeSync(descriptor);
  }
}

/** The chat template of a model file with the tokens that it needs, read from the file's metadata. Throws if it has none. */
export function templateInGguf(file: string): ChatTemplateOptions {
  const metadata = readMetadata(file);
  const source = metadata.get("tokenizer.chat_template");
  if (typeof source !== "string") throw new Error(`${file} has no chat template`);
  const texts = strings(metadata.get("tokenizer.ggml.tokens"));
  const types = metadata.get("tokenizer.ggml.token_type");
  const text = (key: string): string | undefined => {
    const id = metadata.get(`tokenizer.ggml.${key}`);
    return typeof id === "number" ? texts[id] : undefined;
  };
  const ofType = (type: number): string[] =>
    Array.isArray(types) ? texts.filter((token, id) => types[id] === type && token !== "") : [];
  const bosToken = text("bos_token_id");
  const eosToken = text("eos_token_id");
  return {
    source,
    specialTokens: ofType(control),
    markupTokens: ofType(userDefined),
    ...(bosToken !== undefined && { bosToken }),
    ...(eosToken !== undefined && { eosToken }),
  };
}

/** Values of `tokenizer.ggml.token_type`. */
const control = 3;
const userDefined = 4;

/** The key-value pairs of a GGUF (version 2 or 3, little-endian), as its specification lays them out. */
function readMetadata(file: string): Map<string, unknown> {
  const reader = new MetadataReader(file);
  try {
    const version = reader.header();
    if (version !== 2 && version !== 3)
      throw new Error(`${file}: GGUF version ${version} is not supported, only 2 and 3`);
    const pairs = new Map<string, unknown>();
    for (let left = reader.pairs; left > 0; left--)
      pairs.set(reader.string(), reader.value(reader.number(4, "readUInt32LE")));
    return pairs;
  } finally {
    reader.close();
  }
}

/** Reads a file from its start in pieces; metadata may be many megabytes of a file of many gigabytes. */
class MetadataReader {
  readonly #descriptor: number;
  #buffer = Buffer.alloc(0);
  #at = 0;
  pairs = 0;

  constructor(file: string) {
    this.#descriptor = openSync(file, "r");
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  /** The version; sets `pairs`. */
  header(): number {
    this.#take(4);
    const version = this.number(4, "readUInt32LE");
    this.#take(8);
    this.pairs = this.#count();
    return version;
  }

  string(): string {
    return this.#take(this.#count()).toString("utf8");
  }

  number(bytes: number, read: NumberReader): number {
    return this.#take(bytes)[read](0);
  }

  value(type: number): unknown {
    if (type === 7) return this.number(1, "readUInt8") !== 0;
    if (type === 8) return this.string();
    if (type === 9) {
      const itemType = this.number(4, "readUInt32LE");
      return Array.from({ length: this.#count() }, () => this.value(itemType));
    }
    if (type === 10 || type === 11) return Number(this.#take(8).readBigInt64LE(0));
    const layout = numberTypes[type];
    if (layout === undefined) throw new Error(`unknown type ${type} of a GGUF value`);
    return this.number(...layout);
  }

  #count(): number {
    return Number(this.#take(8).readBigUInt64LE(0));
  }

  /** The next bytes; valid until the next call. */
  #take(bytes: number): Buffer {
    while (this.#buffer.length - this.#at < bytes) {
      const more = Buffer.alloc(Math.max(1 << 20, bytes));
      const read = readSync(this.#descriptor, more, 0, more.length, null);
      if (read === 0) throw new Error("the GGUF file ends inside its metadata");
      this.#buffer = Buffer.concat([this.#buffer.subarray(this.#at), more.subarray(0, read)]);
      this.#at = 0;
    }
    this.#at += bytes;
    return this.#buffer.subarray(this.#at - bytes, this.#at);
  }
}

type NumberReader =
  | "readUInt8"
  | "readInt8"
  | "readUInt16LE"
  | "readInt16LE"
  | "readUInt32LE"
  | "readInt32LE"
  | "readFloatLE"
  | "readDoubleLE";

/** GGUF's value types that are plain numbers, by their code. */
const numberTypes: Readonly<Record<number, [bytes: number, read: NumberReader]>> = {
  0: [1, "readUInt8"],
  1: [1, "readInt8"],
  2: [2, "readUInt16LE"],
  3: [2, "readInt16LE"],
  4: [4, "readUInt32LE"],
  5: [4, "readInt32LE"],
  6: [4, "readFloatLE"],
  12: [8, "readDoubleLE"],
};

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
