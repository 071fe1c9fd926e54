import type { RerankAnswer } from "../../core/engine.ts";
import type { ReadRerankRequest } from "./read-request.ts";

/**
 * Writes the answer to `POST /v1/rerank`: the best document first; of equals, the earlier one. Its members are those of Cohere's and Jina's
 * APIs: token counts are in `usage`, as in Jina, vLLM and llama.cpp's server, and in `meta`, as in Cohere's API.
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
    // An unknown count is absent: a zero would be a count.
    ...(promptTokens !== null && {
      usage: { prompt_tokens: promptTokens, total_tokens: promptTokens },
      meta: { tokens: { input_tokens: promptTokens } },
    }),
  });
}
