import { cacheTypes, defaultCacheType, type KvCacheType } from "../cache-type.ts";
import { maxDefaultCacheMemory } from "../defaults.ts";
import type { ModelFile, ModelShape } from "./read-model-file.ts";

/** Memory use of a loaded model in bytes, in main memory and on GPUs together. */
export interface MemoryNeed {
  readonly weights: number;
  /** The KV caches, or recurrent states, of all slots. */
  readonly cache: number;
  /** The maximum size of the prompt cache, which is always in main memory. */
  readonly promptCache: number;
  /** Compute buffers, and the process itself. */
  readonly buffers: number;
}

export interface ContextPlan {
  readonly contextSize: number;
  readonly slots: number;
  readonly batchSize: number;
  /** Types of cached keys and values. Default f16. */
  readonly cacheTypeK?: KvCacheType;
  readonly cacheTypeV?: KvCacheType;
  /** The maximum size of the prompt cache in bytes. Default: the size of the slots' caches, at most 512 MiB. */
  readonly cacheMemory?: number;
}

/** A process with Node and llama.cpp and a tiny model. Measured on Linux: 95 to 125 MiB. */
const processBytes = 116 * 2 ** 20;
/** The token texts in the process and its preparing thread, and per slot. Measured with 49,152 tokens. */
const bytesOfToken = 256;
const bytesOfTokenInSlot = 24;
const copiesOfState = 4;

/**
 * Estimates the memory of a model before it is loaded: weights, a KV cache for each slot, and the buffers of one batch. The estimate is
 * rather too high than too low.
 */
export function memoryNeed(
  { bytes, tiedBytes = 0, shape }: Pick<ModelFile, "bytes" | "shape"> & Partial<ModelFile>,
  plan: ContextPlan,
): MemoryNeed {
  const { slots, batchSize, cacheTypeK = defaultCacheType, cacheTypeV = defaultCacheType } = plan;
  const context = padded(plan.contextSize);
  const { headsKv, keyLength, valueLength, width, feedForward, vocabulary, window, recurrentState } = shape;
  // For a windowed layer, llama.cpp caches the window and one batch.
  const near = window ? Math.min(context, padded(window.tokens + batchSize)) : context;
  let cells = 0;
  for (const [layer, heads] of headsKv.entries()) {
    const isNear = window !== undefined && layer % window.every < window.every - 1;
    cells += heads * (isNear ? near : context);
  }
  const states = headsKv.length * recurrentState * 4;
  const ofSlots =
    slots * cells * (keyLength * cacheTypes[cacheTypeK].bytes + valueLength * cacheTypes[cacheTypeV].bytes);
  // A slot has some checkpoints of a state that cannot be truncated.
  const { cacheMemory = Math.min(maxDefaultCacheMemory, ofSlots + slots * states * copiesOfState) } = plan;
  return {
    // llama.cpp may repack matrices. Tied embeddings then exist in both layouts, since they are also looked up.
    weights: bytes + tiedBytes,
    cache: ofSlots + slots * states,
    promptCache: cacheMemory,
    buffers:
      processBytes +
      vocabulary * (bytesOfToken + slots * bytesOfTokenInSlot) +
      batchBytes({ width, feedForward }, batchSize),
  };
}

/**
 * Estimates the memory that a draft model needs in addition to the model that it drafts for. With one, a recurrent model keeps a state for
 * each of `maxTokens` draft tokens.
 */
export function draftNeed(
  { bytes, tiedBytes, shape }: ModelFile,
  target: Pick<ModelFile, "shape">,
  plan: ContextPlan,
  maxTokens: number,
): MemoryNeed {
  const { weights, cache, buffers } = memoryNeed({ bytes, tiedBytes, shape }, { ...plan, cacheMemory: 0 });
  const { headsKv, recurrentState } = target.shape;
  const states = plan.slots * maxTokens * headsKv.length * recurrentState * 4;
  return { weights, cache: cache + states, promptCache: 0, buffers: buffers - processBytes };
}

/** The sum of two estimates. */
export function sumOf(one: MemoryNeed, other: MemoryNeed): MemoryNeed {
  return {
    weights: one.weights + other.weights,
    cache: one.cache + other.cache,
    promptCache: one.promptCache + other.promptCache,
    buffers: one.buffers + other.buffers,
  };
}

/** Size of llama.cpp's compute buffers for a batch of `tokens`. */
export function batchBytes({ width, feedForward }: Pick<ModelShape, "width" | "feedForward">, tokens: number): number {
  return tokens * (8 * width + 3 * feedForward) * 4;
}

export function totalOf({ weights, cache, promptCache: kept, buffers: rest }: MemoryNeed): number {
  return weights + cache + kept + rest;
}

/** Rounds up to a multiple of 256 tokens, as llama.cpp does for contexts. */
function padded(tokens: number): number {
  return Math.ceil(tokens / 256) * 256;
}
