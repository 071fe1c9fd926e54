import { needWithEmbeddings } from "../file/embedding-need.ts";
import { embeddingPlan, type EmbeddingPlan } from "../file/embedding-plan.ts";
import type { ModelFile } from "../file/read-model-file.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenMessage } from "../protocol.ts";
import { availableMemory, gibibytes } from "./memory.ts";

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
        `${options.model} needs about ${gibibytes(weights + cache + rest)} of memory (${gibibytes(weights)} of weights, the rest for inputs of ` +
          `${plan.longest} tokens), but only ${gibibytes(free)} are free: use a smaller context or a smaller quantization.`,
      );
    plan = planFor(Math.floor(plan.longest / 2));
  }
  return plan;
}
