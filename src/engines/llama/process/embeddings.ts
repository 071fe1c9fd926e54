import { invalidRequest } from "../../../core/failure.ts";
import type { Answer, Question } from "../protocol.ts";
import type { Embedder } from "./embedder.ts";
import { embeddingTokens, type InputLimits } from "./embedding-tokens.ts";
import type { Intake } from "./intake.ts";
import { normalized } from "./normalize.ts";
import { rerankTokens } from "./rerank-tokens.ts";
import type { Tokenizer } from "./tokenize-prompt.ts";

export interface EmbeddingsOptions {
  readonly intake: Intake;
  readonly embedder: Embedder;
  readonly tokenizer: Tokenizer;
  readonly limits: InputLimits;
}

type About<Name extends string> = Extract<Question, { readonly about: Name }>;

/** Answers questions for embeddings and scores: from texts to numbers. */
export class Embeddings {
  readonly #options: EmbeddingsOptions;

  constructor(options: EmbeddingsOptions) {
    this.#options = options;
  }

  /** null: the client left. Rejects with `FailureError`. */
  async embed(id: number, { asked, owner, dimensions }: About<"embeddings">): Promise<Answer | null> {
    const { intake, embedder, tokenizer, limits } = this.#options;
    const { embeddingLength } = tokenizer.model;
    const texts = await intake.read(id, asked, owner, function* (inputs) {
      if (dimensions !== undefined && dimensions > embeddingLength)
        throw tooManyDimensions(dimensions, embeddingLength);
      const all: number[][] = [];
      for (const [at, input] of inputs.entries()) {
        all.push(yield* embeddingTokens(tokenizer, input, limits, inputs.length === 1 ? "input" : `input[${at}]`));
        yield;
      }
      return all;
    });
    const vectors = texts && (await embedder.add(id, texts, owner));
    if (!vectors) return null;
    return {
      about: "embeddings",
      vectors: vectors.map((vector) => base64(normalized(vector, dimensions))),
      promptTokens: countOf(texts),
    };
  }

  /** How well each document fits the query. null: the client left. Rejects with `FailureError`. */
  async score(id: number, { asked, owner, raw }: About<"scores">): Promise<Answer | null> {
    const { intake, embedder, tokenizer, limits } = this.#options;
    const pairs = await intake.read(id, asked, owner, (texts) => rerankTokens(tokenizer, texts, limits));
    const results = pairs && (await embedder.add(id, pairs, owner));
    if (!results) return null;
    const isProbability = endsInSoftmax.has(tokenizer.model.metadata("general.architecture") ?? "");
    const scores = results.map(([score = Number.NaN]) => (raw || isProbability ? score : 1 / (1 + Math.exp(-score))));
    return { about: "scores", scores, promptTokens: countOf(pairs) };
  }
}

/** Their scores are probabilities as llama.cpp computes them (its `build_pooling`); those of others are the classifier's output. */
const endsInSoftmax: ReadonlySet<string> = new Set(["qwen3", "qwen3vl"]);

function countOf(texts: readonly (readonly number[])[]): number {
  return texts.reduce((sum, tokens) => sum + tokens.length, 0);
}

function tooManyDimensions(asked: number, most: number): Error {
  return invalidRequest(
    `Invalid value for 'dimensions': this model's embeddings have ${most} dimensions, and ${asked} were requested.`,
    "dimensions",
    "invalid_value",
  );
}

function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");
}
