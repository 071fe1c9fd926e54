import type { EmbeddingAnswer, EmbeddingRequest } from "../../core/engine.ts";
import { FailureError, invalidRequest } from "../../core/failure.ts";
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
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { isObject } from "../../core/json.ts";
import type { Profile } from "../profile.ts";

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

/**
 * Reads a parsed embeddings answer. Throws `FailureError` if it is an error, or does not have `count` vectors of `dimensions` numbers
 * (`undefined`: of any length). Longer vectors are not shortened: that is correct only for models that are trained for it, and this server
 * does not know which are (https://platform.openai.com/docs/api-reference/embeddings/create#dimensions).
 */
export function readEmbeddings(body: unknown, count: number, dimensions?: number): EmbeddingAnswer {
  const data = isObject(body) ? body["data"] : undefined;
  if (!isObject(body) || !Array.isArray(data)) {
    throw new FailureError(readFailure(body) ?? badAnswer("The upstream's answer has no embeddings."));
  }
  const vectors: (readonly number[])[] = [];
  for (const [position, entry] of data.entries()) {
    if (!isObject(entry)) throw noVector();
    const index = typeof entry["index"] === "number" ? entry["index"] : position;
    vectors[index] = readVector(entry["embedding"]);
  }
  if (vectors.length !== count || vectors.includes(undefined as never)) {
    throw new FailureError(badAnswer(`The upstream sent ${data.length} embeddings for ${count} inputs.`));
  }
  const other = vectors.find(({ length }) => dimensions !== undefined && length !== dimensions);
  if (other) {
    const message = `The upstream sent embeddings of ${other.length} dimensions where ${dimensions} were requested: its model, or the server, does not support \`dimensions\`. Send the request without \`dimensions\`.`;
    throw new FailureError(badAnswer(message));
  }
  const usage = body["usage"];
  const promptTokens = isObject(usage) ? (usage["prompt_tokens"] ?? usage["total_tokens"]) : undefined;
  const model = body["model"];
  return {
    vectors,
    promptTokens: typeof promptTokens === "number" ? promptTokens : null,
    ...(typeof model === "string" && model !== "" && { model }),
  };
}

/** Reads a list of numbers, or base64 of little-endian float32 values. Throws `FailureError` for anything else. */
function readVector(value: unknown): readonly number[] {
  if (Array.isArray(value) && value.every((number) => typeof number === "number")) return value;
  if (typeof value !== "string" || !/^[A-Za-z0-9+/]+={0,2}$/.test(value) || value.length % 4 !== 0) throw noVector();
  const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
  if (bytes.length % 4 !== 0) throw noVector();
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}

function noVector(): FailureError {
  return new FailureError(
    badAnswer("The upstream's answer has an embedding that is neither a list of numbers nor base64."),
  );
}

/** The layout of a body: on one line, or as OpenAI does, with a number per line and a final line feed (recordings of 2025 and 2026). */
const layouts: Readonly<Record<Profile["name"], (value: object) => string>> = {
  lean: (value) => JSON.stringify(value),
  exact: (value) => `${JSON.stringify(value, null, 2)}\n`,
};

/**
 * Writes the body of an embeddings answer. Numbers are printed by `JSON.stringify`, as in OpenAI's answers. `base64`: the vector as
 * little-endian float32 values, as OpenAI packs them.
 */
export function writeEmbeddings(
  { vectors, promptTokens }: EmbeddingAnswer,
  model: string,
  encoding: "float" | "base64",
  profile: Profile,
): string {
  const value = {
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: encoding === "base64" ? packed(vector) : vector,
    })),
    model,
    // An unknown count is absent: a zero would be a count.
    ...(promptTokens !== null && { usage: { prompt_tokens: promptTokens, total_tokens: promptTokens } }),
  };
  return layouts[profile.name](value);
}

function packed(vector: readonly number[]): string {
  const bytes = new DataView(new ArrayBuffer(vector.length * 4));
  for (const [at, value] of vector.entries()) bytes.setFloat32(at * 4, value, true);
  let text = "";
  for (let at = 0; at < bytes.byteLength; at++) text += String.fromCharCode(bytes.getUint8(at));
  return btoa(text);
}

/** Writes the body of an embeddings request to another server. It always asks for numbers; this server makes base64 of them. */
export function writeEmbeddingsRequest(request: EmbeddingRequest): { [name: string]: unknown } {
  const { model, inputs, dimensions, extra } = request;
  return {
    ...extra,
    model,
    input: inputs.length === 1 && typeof inputs[0] === "string" ? inputs[0] : inputs,
    encoding_format: "float",
    ...(dimensions !== undefined && { dimensions }),
  };
}
