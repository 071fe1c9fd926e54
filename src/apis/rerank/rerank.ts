import type { RerankAnswer, RerankRequest } from "../../core/engine.ts";
import { isObject } from "../../core/json.ts";
import {
  arrayTooLong,
  emptyArray,
  emptyString,
  invalidType,
  missingParameter,
  numberBelow,
  objectBody,
  requiredModel,
  typePhrase,
} from "../request/refusals.ts";
import { FailureError } from "../../core/failure.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";

export interface ReadRerankRequest {
  readonly request: RerankRequest;
  /** The number of best documents in the answer; absent: all. */
  readonly topN?: number;
  /** The answer contains the texts of the documents. */
  readonly withDocuments: boolean;
}

/** Cohere's limit of documents per request ("Best practices for using Rerank"). */
const maxDocuments = 10_000;

/**
 * Reads the body of `POST /v1/rerank`, which Cohere's and Jina's APIs, vLLM and llama.cpp's server have in common. Throws `FailureError`
 * (400) with messages in the form of OpenAI's.
 */
export function readRerankRequest(body: unknown, requestId: string): ReadRerankRequest {
  const { model: name, query, documents, top_n: topN, return_documents: withDocuments, ...others } = objectBody(body);
  const { raw_scores: raw, ...extra } = others;
  const model = requiredModel(name);
  if (query === undefined || query === null) throw missingParameter("query");
  if (typeof query !== "string") throw invalidType("query", "a string", typePhrase(query));
  if (query === "") throw emptyString("query");
  return {
    request: {
      id: requestId,
      model,
      query,
      documents: documentsIn(documents),
      ...(flag("raw_scores", raw) && { rawScores: true }),
      extra,
    },
    ...topNOf(topN),
    withDocuments: flag("return_documents", withDocuments),
  };
}

/** Reads texts, or objects with a `text`. */
function documentsIn(documents: unknown): readonly string[] {
  if (documents === undefined || documents === null) throw missingParameter("documents");
  if (!Array.isArray(documents)) throw invalidType("documents", "an array of strings", typePhrase(documents));
  if (documents.length === 0) throw emptyArray("documents");
  if (documents.length > maxDocuments) throw arrayTooLong("documents", maxDocuments, documents.length);
  return documents.map((document: unknown, at) => {
    const text = isObject(document) ? document["text"] : document;
    if (typeof text === "string") return text;
    throw invalidType(`documents[${at}]`, "a string or an object with a text", typePhrase(document));
  });
}

function topNOf(value: unknown): { topN?: number } {
  if (value === undefined || value === null) return {};
  if (typeof value !== "number" || !Number.isInteger(value))
    throw invalidType("top_n", "an integer", typePhrase(value));
  if (value < 1) throw numberBelow("top_n", "integer", 1, value);
  return { topN: value };
}

function flag(name: string, value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw invalidType(name, "a boolean", typePhrase(value));
  return value;
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

/** Writes the body of a rerank request to another server. It asks for all scores, without the documents. */
export function writeRerankRequest({ model, query, documents, rawScores, extra }: RerankRequest): {
  [name: string]: unknown;
} {
  return { ...extra, model, query, documents, return_documents: false, ...(rawScores && { raw_scores: true }) };
}
