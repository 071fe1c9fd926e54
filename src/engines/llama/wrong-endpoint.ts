import type { ModelInfo } from "../../core/engine.ts";
import type { GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";

type Endpoint = ModelInfo["endpoints"][number];

/** What is asked of a model. */
export type Asked = "answers" | "embeddings" | "rerank";

/** @throws {FailureError} where a model cannot be asked something. */
export function checkEndpoint(model: Pick<ModelInfo, "id" | "endpoints">, asked: Asked): void {
  const wrong = wrongEndpoint(model, asked);
  if (wrong) throw new FailureError(wrong);
}

/** Why a model cannot be asked something; undefined: it can. */
export function wrongEndpoint(
  { id, endpoints }: Pick<ModelInfo, "id" | "endpoints">,
  asked: Asked,
): GenerationFailure | undefined {
  const able = (endpoint: Endpoint): boolean => endpoints.includes(endpoint);
  if (asked === "answers" ? able("completions") : able(asked)) return undefined;
  const can = able("rerank") ? "ranks documents (POST /v1/rerank)" : "makes embeddings (POST /v1/embeddings)";
  const messages: Readonly<Record<Asked, string>> = {
    answers: `The model '${id}' does not generate text: it ${can}.`,
    embeddings: able("rerank")
      ? `The model '${id}' does not make embeddings: it ${can}.`
      : `The model '${id}' does not make embeddings. Where it is served, its pooling can be set to mean, cls or last.`,
    rerank: `The model '${id}' is not a reranker.${able("completions") ? "" : ` It ${can}.`}`,
  };
  return { kind: "not-found", status: 404, message: messages[asked], param: "model", code: null };
}
