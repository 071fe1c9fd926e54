import { freemem } from "node:os";
import { FailureError } from "../../../wire/core/failure.ts";
import { maxDefaultContextSize } from "../defaults.ts";
import { embeddingNeed, needWithEmbeddings } from "../file/embedding-need.ts";
import { embeddingPlan, poolingType, type EmbeddingPlan } from "../file/embedding-plan.ts";
import { memoryNeed } from "../file/memory-need.ts";
import type { ModelFile } from "../file/read-model-file.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenModelMessage } from "../protocol.ts";
import { NativeEmbeddingContext } from "./c-api/native-context.ts";
import type { NativeModel } from "./c-api/native-model.ts";

/** The smallest context size, and the smallest input size of an embedding model, that are chosen by default. Tokens. */
const minDefaultContext = 1024;
const minDefaultInput = 512;
/** Texts in one batch at most. */
const maxEmbeddedTexts = 64;

export interface ContextCapacity {
  /** Tokens of one answer with its prompt. */
  readonly contextSize: number;
  /** Tokens of all slots together. */
  readonly capacity: number;
  /** Bytes for the prompt cache. */
  readonly cacheMemory: number;
}

/**
 * The context size to open a model with: the configured one, or else the size that the model was trained for, but at most 8192 tokens. All
 * slots together have that size each; where memory is short, slots with a unified KV cache share less, but at least enough for one answer.
 * With a GPU, llama.cpp finds out what fits.
 *
 * `reserved`: bytes to leave for other uses. Throws ModelOpenError if there is not enough memory.
 */
export function fittingContext(
  file: ModelFile,
  options: OpenModelMessage,
  { gpu, unifiedKv, reserved }: { readonly gpu: boolean; readonly unifiedKv: boolean; readonly reserved: number },
): ContextCapacity {
  const { slots } = options;
  const trained = file.trainedContext ?? maxDefaultContextSize;
  let contextSize = options.contextSize ?? Math.min(trained, maxDefaultContextSize);
  const free = availableMemory() - reserved;
  const capacityFor = (perSlot: number, used: number): ContextCapacity => {
    const { promptCache: kept } = memoryNeed(file, { ...options, contextSize: perSlot });
    return { contextSize, capacity: perSlot * slots, cacheMemory: Math.min(kept, Math.max(0, free - used)) };
  };
  if (gpu) return capacityFor(contextSize, 0);
  for (;;) {
    const min = unifiedKv ? contextSize / slots : contextSize;
    for (let perSlot = contextSize; perSlot >= min; perSlot = Math.floor(perSlot * 0.75)) {
      const used = bytesOf(file, options, perSlot);
      if (used <= free) return capacityFor(perSlot, used);
    }
    if (options.contextSize !== undefined || contextSize / 2 < minDefaultContext) {
      const all = bytesOf(file, options, contextSize);
      const { weights } = memoryNeed(file, { ...options, contextSize });
      throw new ModelOpenError(
        "not-enough-memory",
        `${options.model} needs about ${inGibibytes(all)} of memory (${inGibibytes(weights)} of weights, ${inGibibytes(all - weights)} for ` +
          `${slots} × ${contextSize} tokens of context), but only ${inGibibytes(free)} are free: use fewer slots, a smaller context, or ` +
          "a smaller quantization.",
      );
    }
    contextSize = Math.floor(contextSize / 2);
  }
}

/**
 * Whether one KV cache for all slots is better than one for each. In one cache, slots share what memory there is, and copies of sequences
 * share blocks; but attention passes over the cells of all slots. Four agents with prompts of 12,000 to 40,000 tokens on two slots took
 * 223 s of CPU time with one cache, and 163 s with two (a model of 15M, one thread of an AMD EPYC, `npm run bench agents`). Layers with a
 * sliding window can drop drafts only in one cache. On a GPU, where this was not measured, the cache is as in llama.cpp's server.
 */
export function benefitsFromUnified(
  { needsCheckpoints }: Pick<NativeModel, "needsCheckpoints">,
  { capacity, contextSize }: Pick<ContextCapacity, "capacity" | "contextSize">,
  slots: number,
  hasGpu: boolean,
): boolean {
  return slots === 1 || hasGpu || needsCheckpoints || capacity < contextSize * slots;
}

/**
 * Whether weights are read into memory of the process, rather than mapped from their file. Each token reads all weights, and small scattered
 * pages of the system's cache cost time: a token of a 135M model (Q8_0) took 20.3 ms in place of 23.3 on one thread of an Intel Xeon. They are
 * read where memory suffices for them and for the file in the system's cache, from which the model is loaded again quickly. Only on Linux
 * without a GPU, where it was measured.
 *
 * `needed`: bytes that the model, its caches, and what is loaded with it will take; `weights`: the bytes of its file.
 */
export function hasRoomForWeights(needed: number, weights: number, hasGpu: boolean, free = availableMemory()): boolean {
  return process.platform === "linux" && !hasGpu && needed + weights <= free;
}

function bytesOf(file: ModelFile, options: OpenModelMessage, contextSize: number): number {
  const { weights, cache } = memoryNeed(file, { ...options, contextSize });
  return weights + cache;
}

/**
 * How a model computes embeddings, or `null` if it does not. If it does nothing else, the inputs are as long as fit into memory. With a GPU,
 * llama.cpp finds out what fits. Throws ModelOpenError if there is not enough memory.
 */
export function fittingEmbeddings(file: ModelFile, options: OpenModelMessage, gpu: boolean): EmbeddingPlan | null {
  const planFor = (contextSize: number | null): EmbeddingPlan | null =>
    embeddingPlan(file, { ...options, pooling: options.pooling ?? null, contextSize });
  let plan = planFor(options.contextSize ?? null);
  if (plan?.isOnlyUse !== true || gpu) return plan;
  const free = availableMemory();
  while (plan) {
    const { weights, cache, buffers: rest } = needWithEmbeddings(file, { ...options, contextSize: 0 }, plan);
    if (weights + cache + rest <= free) return plan;
    if (options.contextSize !== undefined || plan.maxInputTokens / 2 < minDefaultInput)
      throw new ModelOpenError(
        "not-enough-memory",
        `${options.model} needs about ${inGibibytes(weights + cache + rest)} of memory (${inGibibytes(weights)} of weights, the rest for inputs of ` +
          `${plan.maxInputTokens} tokens), but only ${inGibibytes(free)} are free: use a smaller context or a smaller quantization.`,
      );
    plan = planFor(Math.floor(plan.maxInputTokens / 2));
  }
  return plan;
}

/** Creates the context for embeddings. Throws an Error with llama.cpp's reason. */
export function openEmbeddingContext(
  model: NativeModel,
  { pooling, maxInputTokens: longest, batchSize }: EmbeddingPlan,
  threads: number,
): NativeEmbeddingContext {
  return new NativeEmbeddingContext(model, {
    poolingType: poolingType(pooling),
    capacity: longest,
    batchSize,
    // A recurrent model has a state of constant size for each sequence.
    sequences: model.isRecurrent ? 1 : Math.min(maxEmbeddedTexts, batchSize),
    threads,
  });
}

/** The same for a model that also generates answers. Throws FailureError 503 if there is not enough memory. */
export function openSecondaryEmbeddingContext(
  model: NativeModel,
  file: ModelFile,
  plan: EmbeddingPlan,
  { threads, gpu }: { readonly threads: number; readonly gpu: boolean },
): NativeEmbeddingContext {
  const { cache, pass } = embeddingNeed(file, plan);
  const free = availableMemory();
  if (!gpu && cache + pass > free)
    throw new FailureError({
      kind: "unavailable",
      message: `There is no memory to make embeddings in: ${inGibibytes(cache + pass)} are needed, and ${inGibibytes(free)} are free.`,
      status: 503,
      param: null,
      code: null,
    });
  return openEmbeddingContext(model, plan, threads);
}

/** Memory that this process may still use: the system's free memory and reclaimable caches, within the limits of its control group. */
function availableMemory(): number {
  return process.availableMemory?.() ?? freemem();
}

function inGibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
