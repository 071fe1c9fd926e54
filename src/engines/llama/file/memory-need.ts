import { cacheTypes, defaultCacheType, type CacheType } from "../cache-type.ts";
import { largestDefaultCacheMemory } from "../defaults.ts";
import type { ModelFile, ModelShape } from "./read-model-file.ts";

/** What a loaded model takes, in bytes, in main memory and on a GPU together. */
export interface MemoryNeed {
  readonly weights: number;
  /** The KV caches of all slots, or what a recurrent model keeps in their place. */
  readonly cache: number;
  /** What is kept of conversations beside the slots, at most: in main memory in any case. */
  readonly kept: number;
  /** What llama.cpp calculates in, and the process around it. */
  readonly rest: number;
}

export interface ContextPlan {
  readonly contextSize: number;
  readonly slots: number;
  readonly batchSize: number;
  /** How keys and values are kept; default: as 16-bit numbers. */
  readonly cacheTypeK?: CacheType;
  readonly cacheTypeV?: CacheType;
  /** What may be kept beside the slots, in bytes; default: as much as the slots have, at most 512 MiB. */
  readonly cacheMemory?: number;
}

/** A process with Node and llama.cpp in it that has answered, with next to no model. Measured on Linux: 95 to 125 MiB. */
const processBytes = 116 * 2 ** 20;
/** The texts of the tokens, in the process and in its preparing thread, and what each slot has of them. Measured with 49,152 tokens. */
const bytesOfToken = 256;
const bytesOfTokenInSlot = 24;
const copiesOfState = 4;

/**
 * What a model will take, known before it is loaded: all weights, a KV cache for each slot, and the buffers of one batch. It is a little high rather than low.
 */
export function memoryNeed(
  { bytes, tiedBytes = 0, shape }: Pick<ModelFile, "bytes" | "shape"> & Partial<ModelFile>,
  plan: ContextPlan,
): MemoryNeed {
  const { slots, batchSize, cacheTypeK = defaultCacheType, cacheTypeV = defaultCacheType } = plan;
  const context = padded(plan.contextSize);
  const { headsKv, keyLength, valueLength, width, feedForward, vocabulary, window, recurrentState } = shape;
  // llama.cpp keeps the window and one batch of a layer that looks back no further.
  const near = window ? Math.min(context, padded(window.tokens + batchSize)) : context;
  let cells = 0;
  for (const [layer, heads] of headsKv.entries()) {
    const isNear = window !== undefined && layer % window.every < window.every - 1;
    cells += heads * (isNear ? near : context);
  }
  const states = headsKv.length * recurrentState * 4;
  const ofSlots =
    slots * cells * (keyLength * cacheTypes[cacheTypeK].bytes + valueLength * cacheTypes[cacheTypeV].bytes);
  // Of a state that cannot be cut, each slot has some copies.
  const { cacheMemory = Math.min(largestDefaultCacheMemory, ofSlots + slots * states * copiesOfState) } = plan;
  return {
    // llama.cpp keeps matrices in another layout where that is faster; embeddings are then kept in both, as they are also looked up.
    weights: bytes + tiedBytes,
    cache: ofSlots + slots * states,
    kept: cacheMemory,
    rest:
      processBytes +
      vocabulary * (bytesOfToken + slots * bytesOfTokenInSlot) +
      passBytes({ width, feedForward }, batchSize),
  };
}

/** What llama.cpp calculates in for a pass of so many tokens. */
export function passBytes({ width, feedForward }: Pick<ModelShape, "width" | "feedForward">, tokens: number): number {
  return tokens * (8 * width + 3 * feedForward) * 4;
}

export function totalOf({ weights, cache, kept, rest }: MemoryNeed): number {
  return weights + cache + kept + rest;
}

/** llama.cpp makes contexts in steps of 256 tokens. */
function padded(tokens: number): number {
  return Math.ceil(tokens / 256) * 256;
}
