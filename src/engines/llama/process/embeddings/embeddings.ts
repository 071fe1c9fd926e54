import { FailureError, invalidRequest } from "../../../../wire/core/failure.ts";
import type { PromptInput } from "../../preparing/prepared-request.ts";
import type { ModelAnswer, ModelQuestion } from "../../protocol.ts";
import type { AsyncSteps } from "../event-loop-share.ts";
import type { Intake } from "../intake.ts";
import { tokenizePrompt, type Tokenizer } from "../tokens/tokenize-prompt.ts";
import type { Embedder } from "./embedder.ts";

/** Limits of one input. */
export interface InputLimits {
  readonly maxTokens: number;
  /** UTF-16 units of the longest token. */
  readonly maxTokenLength: number;
}

export interface EmbeddingsOptions {
  readonly intake: Intake;
  readonly embedder: Embedder;
  readonly tokenizer: Tokenizer;
  readonly limits: InputLimits;
}

type About<Name extends string> = Extract<ModelQuestion, { readonly about: Name }>;

/** Answers requests for embeddings and rerank scores. */
export class Embeddings {
  readonly #options: EmbeddingsOptions;

  constructor(options: EmbeddingsOptions) {
    this.#options = options;
  }

  /** Resolves with `null` if the request is cancelled. Rejects with `FailureError`. */
  async embed(id: number, { asked, owner, dimensions }: About<"embeddings">): Promise<ModelAnswer | null> {
    const { intake, embedder, tokenizer, limits } = this.#options;
    const { embeddingLength } = tokenizer.model;
    const texts = await intake.read(id, asked, owner, function* (inputs) {
      if (dimensions !== undefined && dimensions > embeddingLength)
        throw tooManyDimensions(dimensions, embeddingLength);
      const all: number[][] = [];
      for (const [at, input] of inputs.entries()) {
        all.push(yield* inputTokens(tokenizer, input, limits, inputs.length === 1 ? "input" : `input[${at}]`));
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

  /** Scores how well each document matches the query. Resolves with `null` if the request is cancelled. Rejects with `FailureError`. */
  async score(id: number, { asked, owner, raw }: About<"scores">): Promise<ModelAnswer | null> {
    const { intake, embedder, tokenizer, limits } = this.#options;
    const pairs = await intake.read(id, asked, owner, (texts) => rerankTokens(tokenizer, texts, limits));
    const results = pairs && (await embedder.add(id, pairs, owner));
    if (!results) return null;
    const isProbability = endsInSoftmax.has(tokenizer.model.metadata("general.architecture") ?? "");
    const scores = results.map(([score = Number.NaN]) => (raw || isProbability ? score : 1 / (1 + Math.exp(-score))));
    return { about: "scores", scores, promptTokens: countOf(pairs) };
  }
}

/** Architectures whose scores llama.cpp returns as probabilities (`build_pooling`). Others return the output of the classifier. */
const endsInSoftmax: ReadonlySet<string> = new Set(["qwen3", "qwen3vl"]);

function countOf(texts: readonly (readonly number[])[]): number {
  return texts.reduce((sum, tokens) => sum + tokens.length, 0);
}

function tooManyDimensions(requested: number, max: number): Error {
  return invalidRequest(
    `Invalid value for 'dimensions': this model's embeddings have ${max} dimensions, and ${requested} were requested.`,
    "dimensions",
    "invalid_value",
  );
}

/** The first `length` numbers of a vector, scaled to a Euclidean length of 1. A zero vector is returned unchanged. */
function normalized(vector: Float32Array, length: number = vector.length): Float32Array {
  const cut = vector.subarray(0, length);
  let squares = 0;
  for (const number of cut) squares += number * number;
  const factor = squares > 0 ? 1 / Math.sqrt(squares) : 0;
  return cut.map((number) => number * factor);
}

function base64(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString("base64");
}

/**
 * The tokens of a text to embed, including those that the tokenizer adds to a whole text. Throws FailureError 400 for a text that is too
 * long; one that is too long whatever its tokens are is not tokenized. `param`: the parameter that contains the text.
 */
function* inputTokens(
  tokenizer: Tokenizer,
  input: PromptInput,
  { maxTokens, maxTokenLength }: InputLimits,
  param: string,
): AsyncSteps<number[]> {
  if (input.type === "spans") {
    const length = input.spans.reduce((sum, { text }) => sum + text.length, 0);
    const min = Math.ceil(length / maxTokenLength);
    if (min > maxTokens) throw inputTooLong(`more than ${min}`, min, maxTokens, param);
  }
  const tokens = yield* tokenizePrompt(tokenizer, input, param);
  if (tokens.length === 0) throw invalidRequest(`Invalid '${param}': it has no tokens.`, param, "empty_string");
  if (tokens.length > maxTokens) throw inputTooLong(`${tokens.length}`, tokens.length, maxTokens, param);
  return tokens;
}

/** In OpenAI's words. */
function inputTooLong(count: string, tokens: number, max: number, param: string, what: string = param): FailureError {
  return new FailureError({
    kind: "context-overflow",
    message: `This model's maximum input length is ${max} tokens. However, ${what} has ${count} tokens. Please reduce its length.`,
    status: 400,
    param,
    code: "context_length_exceeded",
    tokens: { asked: tokens, most: max },
  });
}

/**
 * The tokens of each pair of query and document. `texts`: the query, then the documents. As in llama.cpp's server
 * (`format_prompt_rerank`): the model's rerank template, or else [BOS] query [EOS] [SEP] document [EOS] with the tokens that the tokenizer
 * has and adds. Only the template may contain control tokens.
 *
 * Throws FailureError 400 for a document that is too long together with the query.
 */
function* rerankTokens(
  tokenizer: Tokenizer,
  texts: readonly PromptInput[],
  { maxTokens, maxTokenLength }: InputLimits,
): AsyncSteps<number[][]> {
  const [query = "", ...documents] = texts.map(textOf);
  const template = tokenizer.model.rerankTemplate;
  const pairs: number[][] = [];
  const pairOf = template === null ? yield* plainPairs(tokenizer, query) : templatePairs(tokenizer, template, query);
  for (const [at, document] of documents.entries()) {
    const what = `documents[${at}] with the query`;
    const min = Math.ceil((query.length + document.length) / maxTokenLength);
    if (min > maxTokens) throw inputTooLong(`more than ${min}`, min, maxTokens, `documents[${at}]`, what);
    const tokens = yield* pairOf(document);
    if (tokens.length > maxTokens)
      throw inputTooLong(`${tokens.length}`, tokens.length, maxTokens, `documents[${at}]`, what);
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
      // Spans are merged where possible, because a token may span the template and a text.
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
