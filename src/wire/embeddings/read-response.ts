import type { EmbeddingAnswer } from "../../generation/engine.ts";
import { FailureError } from "../../generation/failure.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";
import { isObject } from "../../generation/json.ts";

/** Reads a parsed embeddings answer. Throws `FailureError` for an error in its place, and unless it has `count` vectors. */
export function readEmbeddings(body: unknown, count: number): EmbeddingAnswer {
  const data = isObject(body) ? body["data"] : undefined;
  if (!isObject(body) || !Array.isArray(data)) {
    throw new FailureError(readFailure(body) ?? badAnswer("The upstream's answer has no embeddings."));
  }
  const vectors: (readonly number[])[] = [];
  for (const [position, entry] of data.entries()) {
    if (!isObject(entry))
      throw new FailureError(
        badAnswer("The upstream's answer has an embedding that is neither a list of numbers nor base64."),
      );
    const index = typeof entry["index"] === "number" ? entry["index"] : position;
    vectors[index] = readVector(entry["embedding"]);
  }
  if (vectors.length !== count || vectors.includes(undefined as never)) {
    throw new FailureError(badAnswer(`The upstream sent ${data.length} embeddings for ${count} inputs.`));
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

/** A list of numbers, or base64 of little-endian float32. */
function readVector(value: unknown): readonly number[] {
  if (Array.isArray(value) && value.every((number) => typeof number === "number")) return value;
  if (typeof value !== "string")
    throw new FailureError(
      badAnswer("The upstream's answer has an embedding that is neither a list of numbers nor base64."),
    );
  const bytes = Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true));
}
