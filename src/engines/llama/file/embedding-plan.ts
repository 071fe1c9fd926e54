import { largestDefaultContext } from "../defaults.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { ModelFile } from "./read-model-file.ts";

/** How one vector is made of those of a text's tokens; "rank": it is a score of a query and a document. */
export type Pooling = "mean" | "cls" | "last" | "rank";

/** "none": the model makes no embeddings, whatever its file says. */
export type PoolingSetting = Pooling | "none";

/** What a model makes embeddings with. */
export interface EmbeddingPlan {
  readonly pooling: Pooling;
  /** It can do nothing else. */
  readonly only: boolean;
  /** Tokens of the longest input. */
  readonly longest: number;
  /** Tokens of one pass at most. Less than `longest` where an input can be read in several passes. */
  readonly batchSize: number;
  /** It keeps what it has read of a text, as models that generate do. */
  readonly keepsCache: boolean;
}

export interface EmbeddingSettings {
  /** What the model is called in an error. */
  readonly model: string;
  /** null: as the file says. */
  readonly pooling: PoolingSetting | null;
  /** null: as large as the model was trained for, at most 8192. */
  readonly contextSize: number | null;
  readonly batchSize: number;
}

/** By their numbers in a file (llama.h, `llama_pooling_type`); 0 is none. */
const types: readonly (Pooling | undefined)[] = [undefined, "mean", "cls", "last", "rank"];

export function poolingType(pooling: Pooling): number {
  return types.indexOf(pooling);
}

/** Architectures that read a text as a whole and generate nothing (llama.cpp 0.5.0: those without memory, and T5's encoder). */
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
 * How a model makes embeddings; null: it makes none. As in llama.cpp's own server, a model makes them in the way that its file says, or
 * in the one that it is told, and in none without either. A model whose file says a way was trained for that alone. Throws
 * ModelOpenError for an encoder without a way.
 *
 * An input is read in one pass, since llama.cpp pools what one pass has read; only the last token's vector is the same after several.
 * Beside a model that generates, passes are as large as its own: a larger one takes memory that is seldom used.
 */
export function embeddingPlan(
  file: Pick<ModelFile, "architecture" | "poolingType" | "isCausal" | "trainedContext">,
  settings: EmbeddingSettings,
): EmbeddingPlan | null {
  const { architecture, isCausal, trainedContext = largestDefaultContext } = file;
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
  const asked = settings.contextSize ?? Math.min(trainedContext, largestDefaultContext);
  // An encoder has learned each position; behind the last one there is nothing to read.
  const context = isEncoder ? Math.min(asked, trainedContext) : asked;
  const inPieces = pooling === "last" && isCausal && !isEncoder;
  const batchSize = only && !inPieces ? context : Math.min(settings.batchSize, context);
  return { pooling, only, longest: inPieces ? context : batchSize, batchSize, keepsCache: !isEncoder };
}
