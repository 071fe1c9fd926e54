import type { RerankRequest } from "../../core/engine.ts";

/** The body of a rerank request to another server. All scores are asked for, without the documents, which are known here. */
export function writeRerankRequest({ model, query, documents, rawScores, extra }: RerankRequest): {
  [name: string]: unknown;
} {
  return { ...extra, model, query, documents, return_documents: false, ...(rawScores && { raw_scores: true }) };
}
