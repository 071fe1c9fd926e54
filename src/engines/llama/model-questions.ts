import type {
  DetokenizeRequest,
  EmbeddingAnswer,
  EmbeddingRequest,
  EngineAnswer,
  EngineQuestion,
  QuestionHandlers,
  QuestionKind,
  RerankAnswer,
  RerankRequest,
  SlotState,
  Tokenization,
  TokenizeRequest,
} from "../../core/engine.ts";
import { FailureError } from "../../core/failure.ts";
import type { GenerationRequest, TextPrompt } from "../../core/request.ts";
import { askedText, nestedTooDeeply, type AskedText } from "./asked-text.ts";
import { mostTokensTold, type Answer, type AskedOfModel, type Question, type SomeTokens } from "./protocol.ts";

/** Asks the model's process. Rejects with `FailureError`, also when the process ends or `signal` is aborted meanwhile. */
export type AskModel = (
  question: (asked: string) => Question,
  signal: AbortSignal,
  more?: MoreOfQuestion,
) => Promise<Answer>;

export interface MoreOfQuestion {
  /** What is asked about. */
  readonly text?: AskedText;
  /** Hears tokens that come before the answer. */
  readonly hear?: (some: SomeTokens) => void;
}

/** What can be asked of a local model besides generations. Everything rejects with `FailureError`. */
export class ModelQuestions {
  readonly #ask: AskModel;

  readonly #handlers: QuestionHandlers = {
    "count-tokens": (request, signal) => this.#countTokens(request, signal),
    tokenize: (request, signal) => this.#tokenize(request, signal),
    detokenize: (request, signal) => this.#detokenize(request, signal),
    "apply-template": (request, signal) => this.#applyTemplate(request, signal),
    slots: (_, signal) => this.#slots(signal),
    embed: (request, signal) => this.#embed(request, signal),
    rerank: (request, signal) => this.#rerank(request, signal),
  };
  readonly kinds = Object.keys(this.#handlers) as readonly QuestionKind[];

  constructor(ask: AskModel) {
    this.#ask = ask;
  }

  ask<K extends QuestionKind>({ kind, request }: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>> {
    return this.#handlers[kind](request, signal);
  }

  /** The tokens of a prompt as the model's template writes it and its tokenizer cuts it. */
  async #countTokens(request: GenerationRequest, signal: AbortSignal): Promise<number> {
    const answer = await this.#askTokens(request, "count", signal, { owner: request.owner });
    return answer.count;
  }

  async #tokenize({ input, withBytes }: TokenizeRequest, signal: AbortSignal): Promise<Tokenization> {
    const tokens: number[] = [];
    const bytes: (readonly number[])[] = [];
    const hear = (some: SomeTokens): void => {
      for (const token of some.tokens) tokens.push(token);
      for (const each of some.bytes ?? []) bytes.push(each);
    };
    const wants = withBytes ? "bytes" : "ids";
    if (input.kind === "chat")
      await this.#askTokens(input.request, wants, signal, { owner: input.request.owner, hear });
    else {
      const { text, addSpecial, parseSpecial } = input;
      const prompt: TextPrompt = { kind: "text", prompts: [text] };
      const asked = { prompt, sampling: {}, limits: {}, tokenizing: { addSpecial, parseSpecial } };
      await this.#askTokens(asked, wants, signal, { hear });
    }
    return { tokens, ...(withBytes && { bytes }) };
  }

  async #detokenize({ tokens }: DetokenizeRequest, signal: AbortSignal): Promise<string> {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (let from = 0; from < tokens.length; from += mostTokensTold) {
      const some = tokens.slice(from, from + mostTokensTold);
      const answer = await this.#ask(() => ({ about: "bytes", tokens: some }), signal);
      if (answer.about !== "bytes") return wrongAnswer(answer);
      text += decoder.decode(Buffer.from(answer.bytes, "base64"), { stream: true });
    }
    return text + decoder.decode();
  }

  /** The prompt of a conversation, as the model's template writes it. */
  async #applyTemplate(request: GenerationRequest, signal: AbortSignal): Promise<string> {
    const { owner } = request;
    const answer = await this.#askOf(
      // However long it is: nothing is generated.
      { ...request, tokenizing: { addSpecial: false, parseSpecial: false } },
      (asked) => ({ about: "prompt", ...(owner !== undefined && { owner }), asked }),
      signal,
    );
    return answer.about === "prompt" ? answer.text : wrongAnswer(answer);
  }

  async #embed(request: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingAnswer> {
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

  async #rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer> {
    const { query, documents, owner, rawScores: raw = false } = request;
    const prompt: TextPrompt = { kind: "text", prompts: [query, ...documents] };
    const answer = await this.#askOf(
      { prompt, sampling: {}, limits: {}, tokenizing: { addSpecial: false, parseSpecial: false } },
      (asked) => ({ about: "scores", ...(owner !== undefined && { owner }), raw, asked }),
      signal,
    );
    return answer.about === "scores" ? answer : wrongAnswer(answer);
  }

  async #slots(signal: AbortSignal): Promise<readonly SlotState[]> {
    const answer = await this.#ask(() => ({ about: "slots" }), signal);
    return answer.about === "slots" ? answer.slots : wrongAnswer(answer);
  }

  async #askTokens(
    request: AskedOfModel,
    wants: "count" | "ids" | "bytes",
    signal: AbortSignal,
    { owner, hear }: { readonly owner?: string | undefined } & Pick<MoreOfQuestion, "hear">,
  ): Promise<{ readonly count: number }> {
    const answer = await this.#askOf(
      request,
      (asked) => ({ about: "tokens", ...(owner !== undefined && { owner }), asked, wants }),
      signal,
      hear,
    );
    return answer.about === "tokens" ? answer : wrongAnswer(answer);
  }

  async #askOf(
    request: AskedOfModel,
    question: (asked: string) => Question,
    signal: AbortSignal,
    hear?: MoreOfQuestion["hear"],
  ): Promise<Answer> {
    const text = askedText(request);
    if (text === null) throw new FailureError(nestedTooDeeply);
    return this.#ask(question, signal, { text, ...(hear && { hear }) });
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
