import type { EmbeddingAnswer } from "../../core/engine.ts";
import { FailureError } from "../../core/failure.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { isObject } from "../../core/json.ts";

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
