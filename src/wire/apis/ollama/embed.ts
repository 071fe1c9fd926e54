import type { EmbeddingAnswer, EmbeddingRequest } from "../../core/engine.ts";
import { FailureError, invalidRequest } from "../../core/failure.ts";
import { JsonText } from "../json-text.ts";
import type { Profile } from "../profile.ts";
import { arrayTooLong } from "../request/refusals.ts";
import { checkGoTypes } from "./go-decoder.ts";
import { bodyFailure, goJson } from "./go-values.ts";
import { keepAliveMs } from "./request.ts";
import { ollamaEmbeddingsRequest, ollamaEmbedRequest } from "./request-schema.ts";

export interface ReadOllamaEmbed {
  /** Without inputs, the answer is empty. */
  readonly request: EmbeddingRequest;
  /** The vectors are cut to this length; 0: not. */
  readonly dimensions: number;
  readonly keepLoadedMs?: number;
}

/** As many as OpenAI's API takes; Ollama has no limit. */
const maxInputs = 2048;

/** Reads the body of `POST /api/embed`. Throws `FailureError` in Ollama's words. */
export function readOllamaEmbed(body: unknown, requestId: string, profile: Profile): ReadOllamaEmbed {
  if (profile.judgesAsVendor) checkGoTypes(ollamaEmbedRequest, body);
  const checked = ollamaEmbedRequest.safeParse(body);
  if (!checked.success) throw bodyFailure(body, checked.error.issues);
  const { model, input = null, dimensions, keep_alive: keepAlive } = checked.data;
  if (!model) throw new FailureError({ kind: "not-found", status: 404, message: "model '' not found", param: "model" });
  const inputs = typeof input === "string" ? (input === "" ? [] : [input]) : (input ?? []);
  if (!Array.isArray(inputs) || !inputs.every((item) => typeof item === "string"))
    throw invalidRequest("invalid input type", "input");
  if (inputs.length > maxInputs) throw arrayTooLong("input", maxInputs, inputs.length);
  return embedding(requestId, model, inputs, dimensions ?? 0, keepAlive);
}

/** Reads the body of `POST /api/embeddings`, the older form. Throws `FailureError` in Ollama's words. */
export function readOllamaEmbeddings(body: unknown, requestId: string, profile: Profile): ReadOllamaEmbed {
  if (profile.judgesAsVendor) checkGoTypes(ollamaEmbeddingsRequest, body);
  const checked = ollamaEmbeddingsRequest.safeParse(body);
  if (!checked.success) throw bodyFailure(body, checked.error.issues);
  const { model, prompt, keep_alive: keepAlive } = checked.data;
  if (!model) throw invalidRequest("model is required", "model");
  return embedding(requestId, model, prompt ? [prompt] : [], 0, keepAlive);
}

function embedding(
  id: string,
  model: string,
  inputs: readonly string[],
  dimensions: number,
  keepAlive: string | number | null | undefined,
): ReadOllamaEmbed {
  const keepLoadedMs = keepAliveMs(keepAlive);
  return {
    request: { id, model, inputs, extra: {} },
    dimensions,
    ...(keepLoadedMs !== undefined && { keepLoadedMs }),
  };
}

/** The body of the answer of `/api/embed`. Vectors have the length 1, as Ollama's. `totalMs`: since the request. */
export function writeOllamaEmbed(
  { vectors, promptTokens }: EmbeddingAnswer,
  { request, dimensions }: ReadOllamaEmbed,
  totalMs: number,
): string {
  const isCut = (vector: readonly number[]): boolean => dimensions > 0 && dimensions < vector.length;
  const duration = Math.round(totalMs * 1e6);
  return goJson({
    model: request.model,
    // Millions of numbers, none of which needs Go's escapes.
    embeddings: new JsonText(
      JSON.stringify(vectors.map((vector) => normalized(isCut(vector) ? vector.slice(0, dimensions) : vector))),
    ),
    ...(vectors.length > 0 && duration > 0 && { total_duration: duration }),
    ...(promptTokens !== null && promptTokens > 0 && { prompt_eval_count: promptTokens }),
  });
}

/** The body of the answer of `/api/embeddings`: the vector as the model made it. */
export function writeOllamaEmbeddings({ vectors }: EmbeddingAnswer): string {
  return JSON.stringify({ embedding: vectors[0] ?? [] });
}

function normalized(vector: readonly number[]): number[] {
  const length = Math.max(Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0)), 1e-12);
  return vector.map((value) => value / length);
}
