import type { RerankAnswer, RerankRequest } from "../../core/engine.ts";
import { isObject } from "../../core/json.ts";
import { checkedMembers } from "../request/parameter.ts";
import { objectBody, requiredModel } from "../request/refusals.ts";
import { FailureError } from "../../core/failure.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { serialize } from "../members.ts";
import { ranking, rerankRequest } from "./schema.ts";

export interface ReadRerankRequest {
  readonly request: RerankRequest;
  /** The number of best documents in the answer; absent: all. */
  readonly topN?: number;
  /** The answer contains the texts of the documents. */
  readonly withDocuments: boolean;
}

/** Reads the body of `POST /v1/rerank`. Throws `FailureError` (400) with messages in the form of OpenAI's. */
export function readRerankRequest(body: unknown, requestId: string): ReadRerankRequest {
  const members = objectBody(body);
  const model = requiredModel(members["model"]);
  const { read, others } = checkedMembers(rerankRequest, members);
  return {
    request: {
      id: requestId,
      model,
      query: read.query,
      documents: read.documents.map((document) => (typeof document === "string" ? document : document.text)),
      ...(read.raw_scores === true && { rawScores: true }),
      extra: others,
    },
    ...(read.top_n !== undefined && { topN: read.top_n }),
    withDocuments: read.return_documents ?? false,
  };
}

/**
 * Reads a parsed answer with scores: `results` of Cohere, Jina, vLLM and llama.cpp's server, `data` of others, or the bare list of Text
 * Embeddings Inference. Throws `FailureError` if it is an error, or does not have one score for each of `count` documents.
 */
export function readRanking(body: unknown, count: number): RerankAnswer {
  const listed = isObject(body) ? (body["results"] ?? body["data"]) : body;
  if (!Array.isArray(listed))
    throw new FailureError(readFailure(body) ?? badAnswer("The upstream's answer has no ranking."));
  const scores: (number | undefined)[] = Array.from({ length: count });
  for (const entry of listed) {
    const { index, score } = isObject(entry) ? scoreIn(entry) : {};
    if (typeof index !== "number" || typeof score !== "number" || !(index in scores))
      throw new FailureError(badAnswer("The upstream's ranking has an entry without a document's index and score."));
    scores[index] = score;
  }
  const known = scores.filter((score) => score !== undefined);
  if (known.length < count)
    throw new FailureError(badAnswer(`The upstream sent ${known.length} scores for ${count} documents.`));
  const { model, ...rest } = isObject(body) ? body : {};
  return { scores: known, promptTokens: tokensIn(rest), ...(typeof model === "string" && model !== "" && { model }) };
}

function scoreIn(entry: Readonly<Record<string, unknown>>): { index: unknown; score: unknown } {
  return { index: entry["index"], score: entry["relevance_score"] ?? entry["score"] };
}

function tokensIn({ usage, meta }: Readonly<Record<string, unknown>>): number | null {
  const inMeta = isObject(meta) && isObject(meta["tokens"]) ? meta["tokens"]["input_tokens"] : undefined;
  const tokens = isObject(usage) ? (usage["prompt_tokens"] ?? usage["total_tokens"]) : inMeta;
  return typeof tokens === "number" ? tokens : null;
}

/** Writes the answer to `POST /v1/rerank`: the best document first; of equals, the earlier one. */
export function writeRanking(
  { scores, promptTokens }: RerankAnswer,
  { request, topN, withDocuments }: ReadRerankRequest,
  model: string,
): string {
  const ranked = scores.map((score, index) => ({ index, score })).sort((one, other) => other.score - one.score);
  return serialize(ranking, {
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

/** Writes the body of a rerank request to another server. It asks for all scores, without the documents. */
export function writeRerankRequest({ model, query, documents, rawScores, extra }: RerankRequest): {
  [name: string]: unknown;
} {
  return { ...extra, model, query, documents, return_documents: false, ...(rawScores && { raw_scores: true }) };
}
