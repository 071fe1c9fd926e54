import type {
  DetokenizeRequest,
  EmbeddingAnswer,
  EmbeddingRequest,
  RerankAnswer,
  RerankRequest,
  SlotState,
  Tokenization,
  TokenizeRequest,
} from "../../generation/engine.ts";
import { FailureError } from "../../generation/failure.ts";
import type { GenerationRequest, TextPrompt } from "../../generation/request.ts";
import { askedText, nestedTooDeeply, type AskedText } from "./asked-text.ts";
import type { Answer, AskedOfModel, Question } from "./protocol.ts";

/** Asks the model's process. Rejects with `FailureError`, also when the process ends or `signal` is aborted meanwhile. */
export type AskModel = (
  question: (asked: string) => Question,
  signal: AbortSignal,
  text?: AskedText,
) => Promise<Answer>;

/** What can be asked of a local model besides generations. Everything rejects with `FailureError`. */
export class ModelQuestions {
  readonly #ask: AskModel;

  constructor(ask: AskModel) {
    this.#ask = ask;
  }

  /** The tokens of a prompt as the model's template writes it and its tokenizer cuts it. */
  async countTokens(request: GenerationRequest, signal: AbortSignal): Promise<number> {
    return (await this.#promptTokens(request, signal, request.owner)).tokens.length;
  }

  tokenize({ input }: TokenizeRequest, signal: AbortSignal): Promise<Tokenization> {
    if (input.kind === "chat") return this.#promptTokens(input.request, signal, input.request.owner);
    const { text, addSpecial, parseSpecial } = input;
    const prompt: TextPrompt = { kind: "text", prompts: [text] };
    const tokenizing = { addSpecial, parseSpecial };
    return this.#promptTokens({ prompt, sampling: {}, limits: {}, tokenizing }, signal);
  }

  async detokenize({ tokens }: DetokenizeRequest, signal: AbortSignal): Promise<string> {
    const answer = await this.#ask(() => ({ about: "text", tokens }), signal);
    return answer.about === "text" ? answer.text : wrongAnswer(answer);
  }

  /** The prompt of a conversation, as the model's template writes it. */
  async applyTemplate(request: GenerationRequest, signal: AbortSignal): Promise<string> {
    const { owner } = request;
    const answer = await this.#askOf(
      // However long it is: nothing is generated.
      { ...request, tokenizing: { addSpecial: false, parseSpecial: false } },
      (asked) => ({ about: "prompt", ...(owner !== undefined && { owner }), asked }),
      signal,
    );
    return answer.about === "prompt" ? answer.text : wrongAnswer(answer);
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingAnswer> {
    const { inputs, owner, dimensions } = request;
    const prompt: TextPrompt = { kind: "text", prompts: inputs };
    const answer = await this.#askOf(
      { prompt, sampling: {}, limits: {}, tokenizing: { addSpecial: true, parseSpecial: true } },
      (asked) => ({
        about: "embeddings",
        ...(owner !== undefined && { owner }),
        ...(dimensions !== undefined && { dimensions }),
        asked,
      }),
      signal,
    );
    if (answer.about !== "embeddings") return wrongAnswer(answer);
    return { vectors: answer.vectors.map(vectorOf), promptTokens: answer.promptTokens };
  }

  async rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer> {
    const { query, documents, owner, rawScores: raw = false } = request;
    const prompt: TextPrompt = { kind: "text", prompts: [query, ...documents] };
    const answer = await this.#askOf(
      { prompt, sampling: {}, limits: {}, tokenizing: { addSpecial: false, parseSpecial: false } },
      (asked) => ({ about: "scores", ...(owner !== undefined && { owner }), raw, asked }),
      signal,
    );
    return answer.about === "scores" ? answer : wrongAnswer(answer);
  }

  async slots(signal: AbortSignal): Promise<readonly SlotState[]> {
    const answer = await this.#ask(() => ({ about: "slots" }), signal);
    return answer.about === "slots" ? answer.slots : wrongAnswer(answer);
  }

  async #promptTokens(request: AskedOfModel, signal: AbortSignal, owner?: string): Promise<Tokenization> {
    const answer = await this.#askOf(
      request,
      (asked) => ({ about: "tokens", ...(owner !== undefined && { owner }), asked }),
      signal,
    );
    return answer.about === "tokens" ? answer : wrongAnswer(answer);
  }

  async #askOf(request: AskedOfModel, question: (asked: string) => Question, signal: AbortSignal): Promise<Answer> {
    const text = askedText(request);
    if (text === null) throw new FailureError(nestedTooDeeply);
    return this.#ask(question, signal, text);
  }
}

/** From base64 of little-endian 32-bit numbers. */
function vectorOf(base64: string): readonly number[] {
  const bytes = Buffer.from(base64, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}

/** Look-ups reject for what failed, so this is a question that was answered with another's answer. */
function wrongAnswer({ about }: Answer): never {
  throw new Error(`The model's process answered about ${about}.`);
}
