import type { ModelInfo } from "../../../wire/core/engine.ts";
import type { EmbeddingPlan } from "./embedding-plan.ts";

/** The endpoints that a model supports. `hasTemplate`: it has a chat template, its own or a configured one. */
export function localEndpoints(embedding: EmbeddingPlan | null, hasTemplate: boolean): ModelInfo["endpoints"] {
  const answers: ModelInfo["endpoints"] = hasTemplate ? ["chat", "completions"] : ["completions"];
  if (!embedding) return answers;
  const own = embedding.pooling === "rank" ? "rerank" : "embeddings";
  return embedding.isOnlyUse ? [own] : [...answers, own];
}
