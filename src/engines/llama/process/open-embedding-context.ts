import { embeddingNeed } from "../file/embedding-need.ts";
import { poolingType, type EmbeddingPlan } from "../file/embedding-plan.ts";
import type { ModelFile } from "../file/read-model-file.ts";
import { FailureError } from "../../../core/failure.ts";
import { NativeEmbeddingContext } from "./c-api/native-embedding-context.ts";
import type { NativeModel } from "./c-api/native-model.ts";
import { availableMemory, gibibytes } from "./memory.ts";

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
    room: longest,
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
      message: `There is no memory to make embeddings in: ${gibibytes(cache + pass)} are needed, and ${gibibytes(free)} are free.`,
      status: 503,
      param: null,
      code: null,
    });
  return openEmbeddingContext(model, plan, threads);
}
