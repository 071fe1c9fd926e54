import { freemem } from "node:os";
import { largestDefaultContext } from "../defaults.ts";
import { memoryNeed } from "../file/memory-need.ts";
import type { ModelFile } from "../file/read-model-file.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenMessage } from "../protocol.ts";
import { needWithEmbeddings, embeddingNeed } from "../file/embedding-need.ts";
import { embeddingPlan, type EmbeddingPlan, poolingType } from "../file/embedding-plan.ts";
import { FailureError } from "../../../core/failure.ts";
import { NativeEmbeddingContext } from "./c-api/native-context.ts";
import type { NativeModel } from "./c-api/native-model.ts";

/** The smallest context size that is chosen without being asked for. */
const smallestDefault = 1024;

/** How many tokens one answer has, with its prompt, and how many all of them have together. */
export interface ContextCapacity {
  readonly contextSize: number;
  readonly capacity: number;
  /** What may be kept beside them, in bytes. */
  readonly cacheMemory: number;
}

/**
 * The context to open with. Each answer may have as many tokens as were asked for, else as many as the model was trained for, at most
 * 8192. All slots together have so many times their number; where there is no memory for that, slots with one memory share what there
 * is, which is enough for one answer at least. Throws ModelOpenError when there is not enough memory. With a GPU it is
 * llama.cpp that finds out. `reserved`: bytes that are for something else.
 */
export function fittingContext(
  file: ModelFile,
  options: OpenMessage,
  { gpu, oneMemory, reserved }: { readonly gpu: boolean; readonly oneMemory: boolean; readonly reserved: number },
): ContextCapacity {
  const { slots } = options;
  const trained = file.trainedContext ?? largestDefaultContext;
  let contextSize = options.contextSize ?? Math.min(trained, largestDefaultContext);
  const free = availableMemory() - reserved;
  const roomOf = (each: number, used: number): ContextCapacity => {
    const { kept } = memoryNeed(file, { ...options, contextSize: each });
    return { contextSize, capacity: each * slots, cacheMemory: Math.min(kept, Math.max(0, free - used)) };
  };
  if (gpu) return roomOf(contextSize, 0);
  for (;;) {
    const least = oneMemory ? contextSize / slots : contextSize;
    for (let each = contextSize; each >= least; each = Math.floor(each * 0.75)) {
      const used = bytesOf(file, options, each);
      if (used <= free) return roomOf(each, used);
    }
    if (options.contextSize !== null || contextSize / 2 < smallestDefault) {
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

function bytesOf(file: ModelFile, options: OpenMessage, contextSize: number): number {
  const { weights, cache } = memoryNeed(file, { ...options, contextSize });
  return weights + cache;
}

/** What this process may still use: the system's free memory with what caches give back, within the limits of its control group. */
export function availableMemory(): number {
  return process.availableMemory?.() ?? freemem();
}

export function inGibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

/** The shortest input that is made room for without being asked for. */
const shortest = 512;

/**
 * How the model makes embeddings, where it does nothing else with inputs as long as there is memory for; null: it makes none. With a GPU it
 * is llama.cpp that finds out. Throws ModelOpenError.
 */
export function fittingEmbeddings(file: ModelFile, options: OpenMessage, gpu: boolean): EmbeddingPlan | null {
  const planFor = (contextSize: number | null): EmbeddingPlan | null =>
    embeddingPlan(file, { ...options, pooling: options.pooling ?? null, contextSize });
  let plan = planFor(options.contextSize);
  if (plan?.only !== true || gpu) return plan;
  const free = availableMemory();
  while (plan) {
    const { weights, cache, rest } = needWithEmbeddings(file, { ...options, contextSize: 0 }, plan);
    if (weights + cache + rest <= free) return plan;
    if (options.contextSize !== null || plan.longest / 2 < shortest)
      throw new ModelOpenError(
        "not-enough-memory",
        `${options.model} needs about ${inGibibytes(weights + cache + rest)} of memory (${inGibibytes(weights)} of weights, the rest for inputs of ` +
          `${plan.longest} tokens), but only ${inGibibytes(free)} are free: use a smaller context or a smaller quantization.`,
      );
    plan = planFor(Math.floor(plan.longest / 2));
  }
  return plan;
}

/** Texts in one pass at most. */
const mostTexts = 64;

/** Makes the context in which a model embeds. Throws an Error with llama.cpp's reason. */
export function openEmbeddingContext(
  model: NativeModel,
  { pooling, longest, batchSize }: EmbeddingPlan,
  threads: number,
): NativeEmbeddingContext {
  return new NativeEmbeddingContext(model, {
    poolingType: poolingType(pooling),
    capacity: longest,
    batchSize,
    // A recurrent model keeps a state for each, however long it is.
    sequences: model.isRecurrent ? 1 : Math.min(mostTexts, batchSize),
    threads,
  });
}

/** The same beside a model that generates. Throws FailureError 503 where there is no memory left for it. */
export function openEmbeddingsBeside(
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
