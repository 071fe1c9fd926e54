import type { RerankAnswer } from "../../core/engine.ts";
import { FailureError } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { badAnswer, readFailure } from "../tolerant/read-failure.ts";

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
