import type { EmbeddingRequest } from "../../core/engine.ts";
import { invalidRequest } from "../../core/failure.ts";
import { missingModel } from "../failures.ts";
import {
  arrayTooLong,
  emptyArray,
  emptyString,
  invalidType,
  missingParameter,
  unsupportedEnumValue,
} from "../request/refusals.ts";

export interface ReadEmbeddingRequest {
  readonly request: EmbeddingRequest;
  /** How the client wants its vectors written. */
  readonly encoding: "float" | "base64";
}

/** OpenAI's limit of inputs in one request (specification). */
const mostInputs = 2048;

/** Reads the body of `POST /v1/embeddings`. Throws `FailureError` in OpenAI's words. */
export function readEmbeddingsRequest(body: unknown, requestId: string): ReadEmbeddingRequest {
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw invalidRequest("Invalid type for the request body: expected an object.", null, "invalid_type");
  }
  const members = body as Readonly<Record<string, unknown>>;
  const { model, input, dimensions, encoding_format: encoding, ...extra } = members;
  if (model === undefined || model === null || model === "") throw missingModel();
  if (typeof model !== "string") throw invalidType("model", "a string", kindOf(model));
  if (input === undefined || input === null) throw missingParameter("input");
  const request = {
    id: requestId,
    model,
    inputs: inputsOf(input),
    ...(typeof dimensions === "number" && { dimensions: checkedDimensions(dimensions) }),
    extra,
  };
  if (dimensions !== undefined && dimensions !== null && typeof dimensions !== "number") {
    throw invalidType("dimensions", "an integer", kindOf(dimensions));
  }
  if (encoding === undefined || encoding === null || encoding === "float") return { request, encoding: "float" };
  if (encoding === "base64") return { request, encoding };
  if (typeof encoding !== "string") throw invalidType("encoding_format", "a string", kindOf(encoding));
  throw unsupportedEnumValue("encoding_format", encoding, ["float", "base64"]);
}

/** A text, texts, token ids, or lists of token ids. */
function inputsOf(input: unknown): EmbeddingRequest["inputs"] {
  if (typeof input === "string") {
    if (input === "") throw emptyString("input");
    return [input];
  }
  if (!Array.isArray(input)) throw invalidType("input", "a string or an array", kindOf(input));
  if (input.length === 0) throw emptyArray("input");
  if (isTokens(input)) return [input];
  if (input.length > mostInputs) throw arrayTooLong("input", mostInputs, input.length);
  return input.map((item: unknown, at) => {
    if (item === "") throw emptyString(`input[${at}]`);
    if (typeof item === "string" || isTokens(item)) return item;
    throw invalidType(`input[${at}]`, "a string or an array of integers", kindOf(item));
  });
}

function isTokens(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => Number.isInteger(item) && Number(item) >= 0);
}

function checkedDimensions(dimensions: number): number {
  if (Number.isInteger(dimensions) && dimensions >= 1) return dimensions;
  // OpenAI's own words for this one (recording of 2025).
  throw invalidRequest(`${dimensions} is less than the minimum of 1 - 'dimensions'`);
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return value !== null && typeof value === "object" ? "an object" : `a ${typeof value}`;
}
