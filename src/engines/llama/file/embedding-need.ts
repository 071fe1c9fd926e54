import type { EmbeddingPlan } from "./embedding-plan.ts";
import { memoryNeed, passBytes, type ContextPlan, type MemoryNeed } from "./memory-need.ts";
import type { ModelFile } from "./read-model-file.ts";

/** What a model will take with the context that it makes embeddings in: `memoryNeed`, and that besides or alone. */
export function needWithEmbeddings(
  file: Pick<ModelFile, "bytes" | "shape"> & Partial<ModelFile>,
  plan: ContextPlan,
  embedding: EmbeddingPlan | null,
): MemoryNeed {
  if (!embedding) return memoryNeed(file, plan);
  const { cache, pass } = embeddingNeed(file, embedding);
  const { weights, ...main } = memoryNeed(file, embedding.only ? noContext : plan);
  return { weights, cache: main.cache + cache, kept: main.kept, rest: main.rest + pass };
}

const noContext: ContextPlan = { contextSize: 0, slots: 1, batchSize: 0, cacheMemory: 0 };

/** What embeddings take besides the weights, in bytes: the cache of one text, and what one pass calculates in. */
export function embeddingNeed(
  { bytes, shape }: Pick<ModelFile, "bytes" | "shape">,
  { keepsCache, longest, batchSize }: EmbeddingPlan,
): { readonly cache: number; readonly pass: number } {
  const pass = passBytes(shape, batchSize);
  if (!keepsCache) return { cache: 0, pass };
  // llama.cpp computes the logits of every token, too, and keeps them.
  const logits = 2 * batchSize * shape.vocabulary * 4;
  return {
    cache: memoryNeed({ bytes, shape }, { contextSize: longest, slots: 1, batchSize }).cache,
    pass: pass + logits,
  };
}
