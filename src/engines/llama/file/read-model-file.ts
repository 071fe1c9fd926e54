import { open, stat } from "node:fs/promises";
import { ModelOpenError } from "../model-open-error.ts";
import { type GgufHeader, parseGgufHeader } from "./gguf-metadata.ts";

/** What a model's file says of it before it is loaded. */
export interface ModelFile {
  /** Of all its parts. */
  readonly bytes: number;
  /** Of the token embeddings, if the model computes its output with them, too; else 0. */
  readonly tiedBytes: number;
  readonly hasTemplate: boolean;
  /** Tokens that it was trained for; undefined: the file does not say. */
  readonly trainedContext?: number;
  /**
   * It reads positions in another way in a context that is longer than the one that it was first trained for (`longrope`): a context is
   * to be no larger than one answer needs.
   */
  readonly stretches: boolean;
  /** The name of its kind, such as "llama" or "bert". */
  readonly architecture: string;
  /** How it makes one vector of a text's (llama.h, `llama_pooling_type`); undefined: the file does not say. */
  readonly poolingType?: number;
  /** Its tokens look at those before them only. */
  readonly isCausal: boolean;
  readonly shape: ModelShape;
}

/** The numbers that memory depends on, as the file's metadata has them. */
export interface ModelShape {
  /** Key and value heads of each layer; 0: the layer keeps no cache. */
  readonly headsKv: readonly number[];
  readonly keyLength: number;
  readonly valueLength: number;
  readonly width: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  /** Layers that look back only so far, and how many of them stand before each that looks back all the way. */
  readonly window?: { readonly tokens: number; readonly every: number };
  /** Numbers that each slot keeps for each layer of a recurrent model, such as Mamba or RWKV. */
  readonly recurrentState: number;
}

/** A header grows with the vocabulary, up to some ten megabytes. */
const maxHeaderBytes = 256 * 2 ** 20;
/** llama.cpp takes no more (llama-hparams.h, `LLAMA_MAX_LAYERS`): a file that says more is damaged. */
const maxLayers = 512;

/** Reads the header of a GGUF file (the first part of a split one). Throws `ModelOpenError`. */
export async function readModelFile(path: string): Promise<ModelFile> {
  let header: GgufHeader;
  let bytes: number;
  try {
    header = await readHeader(path);
    const { pairs: metadata } = header;
    bytes = await bytesOfParts(path, numberOf(metadata, "split.count") ?? 1);
  } catch (cause) {
    if (cause instanceof ModelOpenError) throw cause;
    const missing = cause instanceof Error && "code" in cause && cause.code === "ENOENT";
    const why = missing
      ? "does not exist"
      : `cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`;
    throw new ModelOpenError("no-such-file", `The model file ${path} ${why}.`, cause);
  }
  const metadata = header.pairs;
  const architecture = String(metadata.get("general.architecture"));
  const trainedContext = numberOf(metadata, `${architecture}.context_length`);
  const poolingType = numberOf(metadata, `${architecture}.pooling_type`);
  const isCausal = metadata.get(`${architecture}.attention.causal`) !== false;
  return {
    bytes,
    // Encoders compute no output. The list of a split file names the tensors of its first part only.
    tiedBytes: isCausal && !partNumber.test(path) ? tiedBytesOf(header.tensors) : 0,
    architecture,
    ...(poolingType !== undefined && { poolingType }),
    isCausal,
    stretches: metadata.get(`${architecture}.rope.scaling.original_context_length`) !== undefined,
    hasTemplate: typeof metadata.get("tokenizer.chat_template") === "string",
    ...(trainedContext !== undefined && trainedContext > 0 && { trainedContext }),
    shape: shapeOf(path, metadata, architecture),
  };
}

/** Each tensor ends where the next one begins. */
function tiedBytesOf(tensors: GgufHeader["tensors"]): number {
  const start = tensors.get("token_embd.weight");
  if (start === undefined || tensors.has("output.weight")) return 0;
  const end = Math.min(...[...tensors.values()].filter((offset) => offset > start));
  return Number.isSafeInteger(end - start) ? end - start : 0;
}

async function readHeader(path: string): Promise<GgufHeader> {
  const file = await open(path);
  try {
    // Lists with a value for each layer are kept, those with one for each token are not.
    for (let length = 2 ** 20; length <= maxHeaderBytes; length *= 2) {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
      const start = buffer.subarray(0, bytesRead);
      if (start.toString("latin1", 0, 4) !== "GGUF")
        throw new ModelOpenError(
          "not-a-gguf",
          `${path} is not a GGUF file: local models are served from GGUF files only.`,
        );
      const header = parseGgufHeader(start, (key) => !key.startsWith("tokenizer."));
      if (header) return header;
      if (bytesRead < length) throw new ModelOpenError("load-failed", `${path} ends within its header.`);
    }
    throw new ModelOpenError("load-failed", `${path} has a header without an end.`);
  } finally {
    await file.close();
  }
}

/** Split files are called `…-00001-of-00003.gguf` (llama.cpp, gguf-split); a file of another name stands alone. */
async function bytesOfParts(path: string, count: number): Promise<number> {
  let { size: bytes } = await stat(path);
  if (!partNumber.test(path)) return bytes;
  for (let part = 2; part <= count; part++) {
    const number = String(part).padStart(5, "0");
    bytes += (await stat(path.replace(partNumber, `-${number}-of-`))).size;
  }
  return bytes;
}

const partNumber = /-\d{5}-of-/;

function shapeOf(path: string, metadata: ReadonlyMap<string, unknown>, architecture: string): ModelShape {
  const number = (key: string): number | undefined => numberOf(metadata, `${architecture}.${key}`);
  const layers = number("block_count") ?? 0;
  if (layers > maxLayers)
    throw new ModelOpenError("load-failed", `${path} is damaged: it says that the model has ${layers} layers.`);
  const width = number("embedding_length") ?? 0;
  const heads = perLayer(metadata.get(`${architecture}.attention.head_count`), layers, 1);
  const headsKv = perLayer(metadata.get(`${architecture}.attention.head_count_kv`), layers, heads[0] ?? 1);
  const headLength = width / Math.max(1, ...heads);
  const window = number("attention.sliding_window");
  const every = number("attention.sliding_window_pattern") ?? windowPatterns[architecture];
  return {
    headsKv,
    keyLength: number("attention.key_length") ?? headLength,
    valueLength: number("attention.value_length") ?? headLength,
    width,
    feedForward: Math.max(0, ...perLayer(metadata.get(`${architecture}.feed_forward_length`), 1, 0)),
    vocabulary: numberOf(metadata, "tokenizer.ggml.tokens") ?? number("vocab_size") ?? 0,
    ...(window !== undefined && window > 0 && every !== undefined && { window: { tokens: window, every } }),
    // Mamba; RWKV; short convolutions.
    recurrentState:
      (number("ssm.inner_size") ?? 0) * ((number("ssm.state_size") ?? 0) + (number("ssm.conv_kernel") ?? 0)) +
      width * (number("wkv.head_size") ?? 0) +
      width * (number("shortconv.l_cache") ?? 0),
  };
}

/**
 * Of how many layers one looks back all the way, where the file does not say (llama.cpp, llama-model.cpp: `set_swa_pattern`). Of any
 * other architecture every layer is taken for one that does: then the estimate is too high, never too low.
 */
const windowPatterns: Readonly<Record<string, number>> = {
  gemma2: 2,
  gemma3: 6,
  gemma3n: 5,
  cohere2: 4,
  exaone4: 4,
  "gpt-oss": 2,
};

function perLayer(value: unknown, layers: number, otherwise: number): number[] {
  const each = isAmount(value) ? value : otherwise;
  return Array.isArray(value)
    ? value.map((item) => (isAmount(item) ? item : otherwise))
    : Array.from({ length: layers }, () => each);
}

function numberOf(metadata: ReadonlyMap<string, unknown>, key: string): number | undefined {
  const value = metadata.get(key);
  return isAmount(value) ? value : undefined;
}

/** Something that can be counted: a damaged file says anything. */
function isAmount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
