import { invalidRequest, FailureError } from "../../../../core/failure.ts";
import type { Answer, Question } from "../../protocol.ts";
import type { Embedder } from "./embedder.ts";
import type { Intake } from "../intake.ts";
import { type Tokenizer, tokenizePrompt } from "../tokens/tokenize-prompt.ts";
import type { PromptInput } from "../../preparing/prepared-request.ts";
import type { AsyncSteps } from "../event-loop-share.ts";

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

/** The first `length` numbers of a vector, made one long (Euclid); a zero vector stays what it is. */
export function normalized(vector: Float32Array, length: number = vector.length): Float32Array {
  const cut = vector.subarray(0, length);
  let squares = 0;
  for (const number of cut) squares += number * number;
  const factor = squares > 0 ? 1 / Math.sqrt(squares) : 0;
  return cut.map((number) => number * factor);
}

/** How long an input may be, in tokens. */
export interface InputLimits {
  readonly longest: number;
  /** No token stands for more UTF-16 units of text than this. */
  readonly longestToken: number;
}

/**
 * The tokens of a text to embed, with what the tokenizer puts around a whole one. `param`: as what it came. Throws FailureError 400 for
 * one that is too long, which is not made tokens of where it cannot fit whatever its tokens are.
 */
export function* embeddingTokens(
  tokenizer: Tokenizer,
  input: PromptInput,
  limits: InputLimits,
  param: string,
): AsyncSteps<number[]> {
  if (input.type === "spans") {
    const length = input.spans.reduce((sum, { text }) => sum + text.length, 0);
    const fewest = Math.ceil(length / limits.longestToken);
    if (fewest > limits.longest) throw inputTooLong(`more than ${fewest}`, fewest, limits.longest, param);
  }
  const tokens = yield* tokenizePrompt(tokenizer, input, param);
  if (tokens.length === 0) throw invalidRequest(`Invalid '${param}': it has no tokens.`, param, "empty_string");
  if (tokens.length > limits.longest) throw inputTooLong(`${tokens.length}`, tokens.length, limits.longest, param);
  return tokens;
}

/** In OpenAI's words. */
export function inputTooLong(
  count: string,
  asked: number,
  most: number,
  param: string,
  what: string = param,
): FailureError {
  return new FailureError({
    kind: "context-overflow",
    message: `This model's maximum input length is ${most} tokens. However, ${what} has ${count} tokens. Please reduce its length.`,
    status: 400,
    param,
    code: "context_length_exceeded",
    tokens: { asked, most },
  });
}

/**
 * What a reranker reads of a query and each document, as tokens; `texts`: the query, then the documents. As llama.cpp's server has it
 * (its `format_prompt_rerank`): the file's own template for that, else [BOS] query [EOS] [SEP] document [EOS], as far as the
 * tokenizer has and adds them. Control tokens are only those of the template: the query and the documents are texts.
 *
 * Throws FailureError 400 for a document that is too long together with the query.
 */
export function* rerankTokens(
  tokenizer: Tokenizer,
  texts: readonly PromptInput[],
  limits: InputLimits,
): AsyncSteps<number[][]> {
  const [query = "", ...documents] = texts.map(textOf);
  const template = tokenizer.model.rerankTemplate;
  const pairs: number[][] = [];
  const pairOf = template === null ? yield* plainPairs(tokenizer, query) : templatePairs(tokenizer, template, query);
  for (const [at, document] of documents.entries()) {
    const what = `documents[${at}] with the query`;
    const fewest = Math.ceil((query.length + document.length) / limits.longestToken);
    if (fewest > limits.longest)
      throw inputTooLong(`more than ${fewest}`, fewest, limits.longest, `documents[${at}]`, what);
    const tokens = yield* pairOf(document);
    if (tokens.length > limits.longest)
      throw inputTooLong(`${tokens.length}`, tokens.length, limits.longest, `documents[${at}]`, what);
    pairs.push(tokens);
  }
  return pairs;
}

function* plainPairs(tokenizer: Tokenizer, query: string): AsyncSteps<(document: string) => AsyncSteps<number[]>> {
  const { addsBos, addsEos, addsSep, tokens } = tokenizer.model;
  const bos = addsBos && tokens.bos !== null ? [tokens.bos] : [];
  const end = tokens.eos ?? tokens.sep;
  const eos = addsEos && end !== null ? [end] : [];
  const sep = addsSep && tokens.sep !== null ? [tokens.sep] : [];
  const start = [...bos, ...(yield* tokensOf(tokenizer, [{ text: query, special: false }])), ...eos, ...sep];
  return function* (document) {
    return [...start, ...(yield* tokensOf(tokenizer, [{ text: document, special: false }])), ...eos];
  };
}

function templatePairs(
  tokenizer: Tokenizer,
  template: string,
  query: string,
): (document: string) => AsyncSteps<number[]> {
  const { vocabulary } = tokenizer;
  const controls = [...vocabulary.controlTexts(), ...vocabulary.userDefinedTexts()];
  const parts = template.split(/(\{query\}|\{document\})/);
  return (document) => {
    const values: Readonly<Record<string, string>> = { "{query}": query, "{document}": document };
    const spans: { text: string; special: boolean }[] = [];
    for (const part of parts) {
      const value = values[part];
      const text = value ?? part;
      const special = value === undefined || !controls.some((control) => text.includes(control));
      const last = spans.at(-1);
      // Cut where that is needed only: tokens reach over from the template into a text.
      if (last && last.special && special) last.text += text;
      else spans.push({ text, special });
    }
    return tokensOf(tokenizer, spans);
  };
}

function tokensOf(
  tokenizer: Tokenizer,
  spans: readonly { readonly text: string; readonly special: boolean }[],
): AsyncSteps<number[]> {
  return tokenizePrompt(tokenizer, { type: "spans", spans, bos: false, addSpecial: false });
}

function textOf(input: PromptInput): string {
  return input.type === "spans" ? input.spans.map(({ text }) => text).join("") : "";
}
