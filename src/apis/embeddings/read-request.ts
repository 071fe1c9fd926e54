import type { EmbeddingRequest } from "../../core/engine.ts";
import { invalidRequest } from "../../core/failure.ts";
import {
  arrayTooLong,
  emptyArray,
  emptyString,
  invalidType,
  missingParameter,
  objectBody,
  requiredModel,
  typePhrase,
  unsupportedEnumValue,
} from "../request/refusals.ts";

export interface ReadEmbeddingRequest {
  readonly request: EmbeddingRequest;
  /** The form of the vectors in the answer. */
  readonly encoding: "float" | "base64";
}

/** OpenAI's limit of inputs per request (specification). */
const maxInputs = 2048;

/** Reads the body of `POST /v1/embeddings`. Throws `FailureError` with OpenAI's messages. */
export function readEmbeddingsRequest(body: unknown, requestId: string): ReadEmbeddingRequest {
  const { model: name, input, dimensions, encoding_format: encoding, ...extra } = objectBody(body);
  const model = requiredModel(name);
  if (input === undefined || input === null) throw missingParameter("input");
  const request = {
    id: requestId,
    model,
    inputs: inputsOf(input),
    ...(typeof dimensions === "number" && { dimensions: checkedDimensions(dimensions) }),
    extra,
  };
  if (dimensions !== undefined && dimensions !== null && typeof dimensions !== "number") {
    throw invalidType("dimensions", "an integer", typePhrase(dimensions));
  }
  if (encoding === undefined || encoding === null || encoding === "float") return { request, encoding: "float" };
  if (encoding === "base64") return { request, encoding };
  if (typeof encoding !== "string") throw invalidType("encoding_format", "a string", typePhrase(encoding));
  throw unsupportedEnumValue("encoding_format", encoding, ["float", "base64"]);
}

/** Reads a text, texts, token ids, or lists of token ids. */
function inputsOf(input: unknown): EmbeddingRequest["inputs"] {
  if (typeof input === "string") {
    if (input === "") throw emptyString("input");
    return [input];
  }
  if (!Array.isArray(input)) throw invalidType("input", "a string or an array", typePhrase(input));
  if (input.length === 0) throw emptyArray("input");
  if (isTokens(input)) return [input];
  if (input.length > maxInputs) throw arrayTooLong("input", maxInputs, input.length);
  return input.map((item: unknown, at) => {
    if (item === "") throw emptyString(`input[${at}]`);
    if (typeof item === "string" || isTokens(item)) return item;
    throw invalidType(`input[${at}]`, "a string or an array of integers", typePhrase(item));
  });
}

function isTokens(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => Number.isInteger(item) && Number(item) >= 0);
}

function checkedDimensions(dimensions: number): number {
  if (Number.isInteger(dimensions) && dimensions >= 1) return dimensions;
  // OpenAI's message (recording of 2025).
  throw invalidRequest(`${dimensions} is less than the minimum of 1 - 'dimensions'`);
}
