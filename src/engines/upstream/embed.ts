import type { EmbeddingAnswer, EmbeddingRequest } from "../../core/engine.ts";
import { readEmbeddings } from "../../apis/embeddings/read-response.ts";
import { writeEmbeddingsRequest } from "../../apis/embeddings/write-request.ts";
import { askWhole } from "./ask-whole.ts";
import type { AskContext } from "./ask-whole.ts";

/** Asks an upstream for embeddings. `add`: members that every request gets. Rejects with `FailureError`. */
export async function embed(
  request: EmbeddingRequest,
  add: Readonly<Record<string, unknown>>,
  context: AskContext,
  signal: AbortSignal,
): Promise<EmbeddingAnswer> {
  const body = { ...writeEmbeddingsRequest(request), ...add };
  const answer = await askWhole({ path: "/embeddings", id: request.id, body }, context, signal);
  return readEmbeddings(answer, request.inputs.length, request.dimensions);
}
