import { invalidRequest } from "../../../generation/failure.ts";
import type { Answer, Question } from "../protocol.ts";
import type { Embedder } from "./embedder.ts";
import { embeddingTokens, type InputLimits } from "./embedding-tokens.ts";
import type { Intake } from "./intake.ts";
import { normalized } from "./normalize.ts";
import type { Tokenizer } from "./tokenize-prompt.ts";

export interface EmbeddingsOptions {
  readonly intake: Intake;
  readonly embedder: Embedder;
  readonly tokenizer: Tokenizer;
  readonly limits: InputLimits;
}

type About<Name extends string> = Extract<Question, { readonly about: Name }>;

/** Answers questions for embeddings: from texts to vectors. */
export class Embeddings {
  readonly #options: EmbeddingsOptions;

  constructor(options: EmbeddingsOptions) {
    this.#options = options;
  }

  /** null: the client left. Rejects with `FailureError`. */
  async embed(id: number, { asked, owner, dimensions }: About<"embeddings">): Promise<Answer | null> {
    const { intake, embedder, tokenizer, limits } = this.#options;
    const { embeddingLength } = tokenizer.model;
    if (dimensions !== undefined && dimensions > embeddingLength) throw tooManyDimensions(dimensions, embeddingLength);
    const texts = await intake.tokensOf(id, asked, owner, function* (inputs) {
      const all: number[][] = [];
      for (const [at, input] of inputs.entries())
        all.push(yield* embeddingTokens(tokenizer, input, limits, inputs.length === 1 ? "input" : `input[${at}]`));
      return all;
    });
    const vectors = texts && (await embedder.add(id, texts, owner));
    if (!vectors) return null;
    return {
      about: "embeddings",
      vectors: vectors.map((vector) => base64(normalized(vector, dimensions))),
      promptTokens: texts.reduce((sum, tokens) => sum + tokens.length, 0),
    };
  }
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
