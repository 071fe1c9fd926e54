import { open, stat } from "node:fs/promises";
import type { ModelFileFacts } from "../../../wire/core/engine.ts";
import type { Sampling } from "../../../wire/core/request.ts";
import type { TakenMedia } from "../../../wire/core/unreadable-part.ts";
import { defaultSampling } from "../defaults.ts";
import { ModelOpenError } from "../model-open-error.ts";
import { type GgufHeader, parseGgufHeader } from "./gguf-metadata.ts";

/** Facts about a model from its file's header. */
export interface ModelFile {
  /** Size of all parts of a split file. */
  readonly bytes: number;
  /** Size of the token embeddings if they are also the output weights (tied), else 0. */
  readonly tiedBytes: number;
  readonly hasTemplate: boolean;
  /** Context size of the training in tokens; undefined if the file does not specify it. */
  readonly trainedContext?: number;
  /**
   * Positions are scaled differently in a context that is longer than the original one (`longrope`), so the context should be no larger than
   * needed.
   */
  readonly usesLongRope: boolean;
  /** "llama" or "bert", for example. */
  readonly architecture: string;
  /** `llama_pooling_type` of llama.h; undefined if the file does not specify it. */
  readonly poolingType?: number;
  /** Attention is causal: tokens attend to earlier tokens only. */
  readonly isCausal: boolean;
  readonly shape: ModelShape;
  readonly facts: ModelFileFacts;
}

/** The metadata that memory use depends on. */
export interface ModelShape {
  /** Number of KV heads of each layer; 0 for a layer without a KV cache. */
  readonly headsKv: readonly number[];
  readonly keyLength: number;
  readonly valueLength: number;
  readonly width: number;
  readonly feedForward: number;
  readonly vocabulary: number;
  /** Sliding-window attention: the window in tokens; every `every`-th layer attends to the whole context. */
  readonly window?: { readonly tokens: number; readonly every: number };
  /** Size of a slot's recurrent state for each layer (Mamba, RWKV), in numbers. */
  readonly recurrentState: number;
}

/** A header contains the vocabulary: some ten megabytes. */
const maxHeaderBytes = 256 * 2 ** 20;
/** The maximum of llama.cpp (llama-hparams.h, `LLAMA_MAX_LAYERS`). */
const maxLayers = 512;

/** Reads the header of a GGUF file (the first part of a split one). Throws `ModelOpenError`. */
export async function readModelFile(path: string): Promise<ModelFile> {
  let header: GgufHeader;
  let bytes: number;
  let modified: number;
  try {
    header = await readHeader(path);
    const { pairs: metadata } = header;
    modified = Math.floor((await stat(path)).mtimeMs / 1000);
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
    // Encoders have no output weights. The tensor list of a split file is that of its first part.
    tiedBytes: isCausal && !partNumber.test(path) ? tiedBytesOf(header.tensors) : 0,
    architecture,
    ...(poolingType !== undefined && { poolingType }),
    isCausal,
    usesLongRope: metadata.get(`${architecture}.rope.scaling.original_context_length`) !== undefined,
    hasTemplate: typeof metadata.get(templateKey) === "string",
    ...(trainedContext !== undefined && trainedContext > 0 && { trainedContext }),
    shape: shapeOf(path, metadata, architecture),
    facts: factsOf(metadata, architecture, bytes, modified),
  };
}

export interface ProjectorFile {
  readonly bytes: number;
  readonly takes: Required<TakenMedia>;
  /** Its process starts with the first image (`truewire.lazy`), so that a small model is ready as soon as without it. */
  readonly isLazy: boolean;
}

/** Reads the header of a projector. Throws `ModelOpenError`. Source: llama.cpp, tools/mtmd/clip-impl.h. */
export async function readProjectorFile(path: string): Promise<ProjectorFile> {
  const { pairs } = await readHeader(path);
  const takes = {
    images: pairs.get("clip.has_vision_encoder") === true,
    audio: pairs.get("clip.has_audio_encoder") === true,
  };
  return { bytes: (await stat(path)).size, takes, isLazy: pairs.get("truewire.lazy") === true };
}

/** Metadata beyond this many pairs is left out: the facts are sent to clients. */
const maxPairs = 200;

function factsOf(metadata: GgufHeader["pairs"], architecture: string, bytes: number, modified: number): ModelFileFacts {
  const template = metadata.get(templateKey);
  const fileType = numberOf(metadata, "general.file_type");
  const size = metadata.get("general.size_label");
  const pairs = [...metadata].filter(([key]) => key !== "general.name" && key !== templateKey).slice(0, maxPairs);
  return {
    bytes,
    modified,
    architecture,
    size: typeof size === "string" ? size : "",
    ...(fileType !== undefined && { fileType }),
    ...(typeof template === "string" && { template }),
    metadata: Object.fromEntries(pairs.map(([key, value]) => [key, shownValue(key, value)])),
  };
}

const templateKey = "tokenizer.chat_template";

/**
 * The sampling that the metadata of a model's file recommends, for requests that do not set it. Values out of range, and mirostat, are
 * ignored. Source: llama.cpp, llama.h `llama_model_meta_key`; common.cpp, `common_init_sampler_from_model`.
 */
export function recommendedSampling(metadata: ModelFileFacts["metadata"]): Sampling {
  const valueOf = (name: string, min: number, max: number): number | undefined => {
    const value = metadata[`general.sampling.${name}`];
    // Most are 32-bit floats: 0.949999988079071 was written as 0.95.
    return typeof value === "number" && value >= min && value <= max ? Number(value.toPrecision(6)) : undefined;
  };
  const temperature = valueOf("temp", 0, 100);
  const topP = valueOf("top_p", 0, 1);
  const topK = valueOf("top_k", -1, 1e6);
  const minP = valueOf("min_p", 0, 1);
  const repeatPenalty = valueOf("penalty_repeat", 0.01, 100);
  const repeatLastN = valueOf("penalty_last_n", -1, 1e6);
  const probability = valueOf("xtc_probability", 0, 1);
  const threshold = valueOf("xtc_threshold", 0, 1) ?? defaultSampling.xtc.threshold;
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(topK !== undefined && { topK: Math.max(0, Math.trunc(topK)) }),
    ...(minP !== undefined && { minP }),
    ...(repeatPenalty !== undefined && { repeatPenalty }),
    ...(repeatLastN !== undefined && { repeatLastN: Math.trunc(repeatLastN) }),
    ...(probability !== undefined && { xtc: { probability, threshold } }),
  };
}

/** Lists of the vocabulary are represented by their lengths. */
function shownValue(key: string, value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  const isList =
    Array.isArray(value) || /^tokenizer\.ggml\.(?:tokens|scores|token_type|merges|precompiled_charsmap)$/.test(key);
  return isList ? [] : value;
}

/** The size of the token embeddings, which end where the next tensor begins. */
function tiedBytesOf(tensors: GgufHeader["tensors"]): number {
  const start = tensors.get("token_embd.weight");
  if (start === undefined || tensors.has("output.weight")) return 0;
  const end = Math.min(...[...tensors.values()].filter((offset) => offset > start));
  return Number.isSafeInteger(end - start) ? end - start : 0;
}

async function readHeader(path: string): Promise<GgufHeader> {
  const file = await open(path);
  try {
    // Keeps lists with a value for each layer, but not for each token.
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

/** The size of a file with all parts. The parts of a split file are named `…-00001-of-00003.gguf` (llama.cpp, gguf-split). */
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
 * The sliding-window pattern of architectures whose files do not specify it (llama.cpp, llama-model.cpp: `set_swa_pattern`). For other
 * architectures no layer counts as windowed, so that the estimate is too high rather than too low.
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

/** A non-negative integer: a damaged file may contain any value. */
function isAmount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
