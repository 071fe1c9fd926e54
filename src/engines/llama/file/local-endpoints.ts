import type { ModelInfo } from "../../../wire/core/engine.ts";
import type { GenerationFailure } from "../../../wire/core/events.ts";
import type { EmbeddingPlan } from "./embedding-plan.ts";

/** The endpoints that a model supports. `hasTemplate`: it has a chat template, its own or a configured one. */
export function localEndpoints(embedding: EmbeddingPlan | null, hasTemplate: boolean): ModelInfo["endpoints"] {
  const answers: ModelInfo["endpoints"] = hasTemplate ? ["chat", "completions"] : ["completions"];
  if (!embedding) return answers;
  const own = embedding.pooling === "rank" ? "rerank" : "embeddings";
  return embedding.isOnlyUse ? [own] : [...answers, own];
}

type Endpoint = "completions" | "embeddings" | "rerank";

/** The failure of a request for an endpoint that the model does not support; undefined if it does. */
export function missingEndpoint({ id, endpoints }: ModelInfo, asked: Endpoint): GenerationFailure | undefined {
  if (endpoints.includes(asked)) return undefined;
  const ranks = endpoints.includes("rerank");
  const supported = ranks ? "ranks documents (POST /v1/rerank)" : "makes embeddings (POST /v1/embeddings)";
  const messages: Readonly<Record<Endpoint, string>> = {
    completions: `The model '${id}' does not generate text: it ${supported}.`,
    embeddings: ranks
      ? `The model '${id}' does not make embeddings: it ${supported}.`
      : `The model '${id}' does not make embeddings. Where it is served, its pooling can be set to mean, cls or last.`,
    rerank: `The model '${id}' is not a reranker.${endpoints.includes("completions") ? "" : ` It ${supported}.`}`,
  };
  return { kind: "not-found", status: 404, message: messages[asked], param: "model", code: null };
}
