import type { RerankRequest } from "../../core/engine.ts";
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
