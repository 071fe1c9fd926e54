import type { EmbeddingPlan } from "./embedding-plan.ts";
import { memoryNeed, batchBytes, type ContextPlan, type MemoryNeed } from "./memory-need.ts";
import type { ModelFile } from "./read-model-file.ts";

/** Estimates the memory of a model with the context for embeddings, which is in addition to or in place of the main one. */
export function needWithEmbeddings(
  file: Pick<ModelFile, "bytes" | "shape"> & Partial<ModelFile>,
  plan: ContextPlan,
  embedding: EmbeddingPlan | null,
): MemoryNeed {
  if (!embedding) return memoryNeed(file, plan);
  const { cache, pass } = embeddingNeed(file, embedding);
  const { weights, ...main } = memoryNeed(file, embedding.isOnlyUse ? noContext : plan);
  return { weights, cache: main.cache + cache, promptCache: main.promptCache, buffers: main.buffers + pass };
}

const noContext: ContextPlan = { contextSize: 0, slots: 1, batchSize: 0, cacheMemory: 0 };

/** Memory for embeddings in addition to the weights, in bytes: the KV cache of one text, and the buffers of one batch. */
export function embeddingNeed(
  { bytes, shape }: Pick<ModelFile, "bytes" | "shape">,
  { hasKvCache: keepsCache, maxInputTokens: longest, batchSize }: EmbeddingPlan,
): { readonly cache: number; readonly pass: number } {
  const pass = batchBytes(shape, batchSize);
  if (!keepsCache) return { cache: 0, pass };
  // llama.cpp also computes and stores the logits of every token.
  const logits = 2 * batchSize * shape.vocabulary * 4;
  return {
    cache: memoryNeed({ bytes, shape }, { contextSize: longest, slots: 1, batchSize }).cache,
    pass: pass + logits,
  };
}
