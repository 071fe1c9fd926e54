import { closeSync, openSync, readSync } from "node:fs";
import { parseGgufMetadata } from "../../engines/llama/file/gguf-metadata.ts";
import type { ChatTemplateOptions } from "../../text/templates/chat-template.ts";

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
    bosToken,
    eosToken,
  };
}

/** Values of `tokenizer.ggml.token_type`. */
const control = 3;
const userDefined = 4;

/** The metadata of a file; it may be many megabytes of a file of many gigabytes. */
function readMetadata(file: string): Map<string, unknown> {
  const descriptor = openSync(file, "r");
  try {
    for (let length = 1 << 20; ; length *= 2) {
      const start = Buffer.alloc(length);
      const read = readSync(descriptor, start, 0, length, 0);
      const metadata = parseGgufMetadata(start.subarray(0, read), () => true);
      if (metadata) return metadata;
      if (read < length) throw new Error("the GGUF file ends inside its metadata");
    }
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  } finally {
    closeSync(descriptor);
  }
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
