import type { RerankRequest } from "../../core/engine.ts";
import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { missingModel } from "../failures.ts";
import {
  arrayTooLong,
  emptyArray,
  emptyString,
  invalidType,
  missingParameter,
  numberBelow,
} from "../request/refusals.ts";

export interface ReadRerankRequest {
  readonly request: RerankRequest;
  /** So many of the best documents are told; absent: all. */
  readonly topN?: number;
  /** The documents' texts are told, too. */
  readonly withDocuments: boolean;
}

/** Cohere's limit of documents in one request ("Best practices for using Rerank"). */
const mostDocuments = 10_000;

/**
 * Reads the body of `POST /v1/rerank`, which Cohere's and Jina's APIs, vLLM and llama.cpp's server have in common. Throws `FailureError`
 * 400 in OpenAI's words.
 */
export function readRerankRequest(body: unknown, requestId: string): ReadRerankRequest {
  if (!isObject(body))
    throw invalidRequest("Invalid type for the request body: expected an object.", null, "invalid_type");
  const { model, query, documents, top_n: topN, return_documents: withDocuments, ...others } = body;
  const { raw_scores: raw, ...extra } = others;
  if (model === undefined || model === null || model === "") throw missingModel();
  if (typeof model !== "string") throw invalidType("model", "a string", kindOf(model));
  if (query === undefined || query === null) throw missingParameter("query");
  if (typeof query !== "string") throw invalidType("query", "a string", kindOf(query));
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

/** Texts, or objects that have one. */
function documentsIn(documents: unknown): readonly string[] {
  if (documents === undefined || documents === null) throw missingParameter("documents");
  if (!Array.isArray(documents)) throw invalidType("documents", "an array of strings", kindOf(documents));
  if (documents.length === 0) throw emptyArray("documents");
  if (documents.length > mostDocuments) throw arrayTooLong("documents", mostDocuments, documents.length);
  return documents.map((document: unknown, at) => {
    const text = isObject(document) ? document["text"] : document;
    if (typeof text === "string") return text;
    throw invalidType(`documents[${at}]`, "a string or an object with a text", kindOf(document));
  });
}

function topNOf(value: unknown): { topN?: number } {
  if (value === undefined || value === null) return {};
  if (typeof value !== "number" || !Number.isInteger(value)) throw invalidType("top_n", "an integer", kindOf(value));
  if (value < 1) throw numberBelow("top_n", "integer", 1, value);
  return { topN: value };
}

function flag(name: string, value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw invalidType(name, "a boolean", kindOf(value));
  return value;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
