import type { ModelInfo } from "../../../core/engine.ts";
import type { EmbeddingPlan } from "./embedding-plan.ts";

/** What a model can be asked. `hasTemplate`: for conversations, its own or a configured one. */
export function endpointsOf(embedding: EmbeddingPlan | null, hasTemplate: boolean): ModelInfo["endpoints"] {
  const answers: ModelInfo["endpoints"] = hasTemplate ? ["chat", "completions"] : ["completions"];
  if (!embedding) return answers;
  const own = embedding.pooling === "rank" ? "rerank" : "embeddings";
  return embedding.only ? [own] : [...answers, own];
}
