import type { RerankRequest } from "../../core/engine.ts";

/** Writes the body of a rerank request to another server. It asks for all scores, without the documents. */
export function writeRerankRequest({ model, query, documents, rawScores, extra }: RerankRequest): {
  [name: string]: unknown;
} {
  return { ...extra, model, query, documents, return_documents: false, ...(rawScores && { raw_scores: true }) };
}
