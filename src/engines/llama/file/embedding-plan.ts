import { maxDefaultContextSize } from "../defaults.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { ModelFile } from "./read-model-file.ts";

/** How token embeddings are pooled; "rank": a score for a query and a document. */
export type Pooling = "mean" | "cls" | "last" | "rank";

/** "none": no embeddings, even if the file specifies a pooling type. */
export type PoolingSetting = Pooling | "none";

/** How a model computes embeddings. */
export interface EmbeddingPlan {
  readonly pooling: Pooling;
  /** The model does not generate. */
  readonly isOnlyUse: boolean;
  /** Maximum length of an input in tokens. */
  readonly maxInputTokens: number;
  /** Maximum batch size in tokens. Less than `maxInputTokens` if an input can be evaluated in several batches. */
  readonly batchSize: number;
  /** The context has a KV cache, as for models that generate. */
  readonly hasKvCache: boolean;
}

export interface EmbeddingSettings {
  /** The model's name in errors. */
  readonly model: string;
  /** null: from the file. */
  readonly pooling: PoolingSetting | null;
  /** null: the size that the model was trained for, at most 8192. */
  readonly contextSize: number | null;
  readonly batchSize: number;
}

/** Indexed by `llama_pooling_type` (llama.h); 0 is none. */
const types: readonly (Pooling | undefined)[] = [undefined, "mean", "cls", "last", "rank"];

export function poolingType(pooling: Pooling): number {
  return types.indexOf(pooling);
}

/** Encoder architectures, which do not generate (llama.cpp 0.5.0: those without memory, and T5's encoder). */
const encoders: ReadonlySet<string> = new Set([
  "bert",
  "modern-bert",
  "nomic-bert",
  "nomic-bert-moe",
  "neo-bert",
  "jina-bert-v2",
  "jina-bert-v3",
  "eurobert",
  "gemma-embedding",
  "t5encoder",
]);

/**
 * Returns how a model computes embeddings, or null if it does not support them. As in llama.cpp's server, the pooling type is that of the
 * settings or of the file. A model whose file has a pooling type does nothing else. Throws `ModelOpenError` for an encoder without one.
 *
 * llama.cpp pools the tokens of one batch, so an input must fit in a batch, except for pooling of the last token. If the model also
 * generates, the batch size is that for generating, since a larger one would need memory that is rarely used.
 */
export function embeddingPlan(
  file: Pick<ModelFile, "architecture" | "poolingType" | "isCausal" | "trainedContext">,
  settings: EmbeddingSettings,
): EmbeddingPlan | null {
  const { architecture, isCausal, trainedContext = maxDefaultContextSize } = file;
  const trainedFor = types[file.poolingType ?? 0];
  const isEncoder = encoders.has(architecture);
  const pooling = settings.pooling ?? trainedFor ?? "none";
  if (pooling === "none") {
    if (isEncoder)
      throw new ModelOpenError(
        "load-failed",
        `${settings.model} only makes embeddings, so it needs a way to do so: set its pooling to mean, cls, last or rank.`,
      );
    return null;
  }
  const only = isEncoder || trainedFor !== undefined || pooling === "rank";
  const contextSize = settings.contextSize ?? Math.min(trainedContext, maxDefaultContextSize);
  // An encoder has no embeddings for positions after the trained ones.
  const context = isEncoder ? Math.min(contextSize, trainedContext) : contextSize;
  const isSplittable = pooling === "last" && isCausal && !isEncoder;
  const batchSize = only && !isSplittable ? context : Math.min(settings.batchSize, context);
  return {
    pooling,
    isOnlyUse: only,
    maxInputTokens: isSplittable ? context : batchSize,
    batchSize,
    hasKvCache: !isEncoder,
  };
}
