import type { RerankAnswer } from "../../core/engine.ts";
import type { ReadRerankRequest } from "./read-request.ts";

/**
 * The body of an answer to `POST /v1/rerank`: the best document first; of equals, the earlier one. Its members are those that Cohere's and
 * Jina's APIs have: tokens are told as `usage`, as Jina, vLLM and llama.cpp's server do, and as `meta`, as Cohere does.
 */
export function writeRanking(
  { scores, promptTokens }: RerankAnswer,
  { request, topN, withDocuments }: ReadRerankRequest,
  model: string,
): string {
  const ranked = scores.map((score, index) => ({ index, score })).sort((one, other) => other.score - one.score);
  return JSON.stringify({
    id: request.id,
    object: "list",
    model,
    results: ranked.slice(0, topN).map(({ index, score }) => ({
      index,
      relevance_score: score,
      ...(withDocuments && { document: { text: request.documents[index] } }),
    })),
    // An unknown count is left out: a zero would be a count.
    ...(promptTokens !== null && {
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
      meta: { tokens: { input_tokens: promptTokens } },
    }),
  });
}
