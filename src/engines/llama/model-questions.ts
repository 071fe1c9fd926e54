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
} from "../../wire/core/engine.ts";
import type { GenerationFailure, Usage } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { GenerationRequest, TextPrompt } from "../../wire/core/request.ts";
import {
  maxTokensPerMessage,
  type ModelAnswer,
  type ModelRequest,
  type ModelQuestion,
  type TokensChunk,
  type ToModel,
} from "./protocol.ts";
import { requestText, unwritable, type RequestText } from "./request-text.ts";

/** The connection to the model's process. */
export interface QuestionChannel {
  /** Returns a new id. Throws `FailureError` if the model is not ready. */
  readonly begin: () => number;
  readonly end: (id: number) => void;
  /** Sends the message that `message` makes of the text, in chunks if it is long. `fail` is called if it cannot be written. */
  readonly send: (
    id: number,
    text: RequestText,
    message: (asked: string) => ToModel,
    isWanted: () => boolean,
    fail: (failure: GenerationFailure) => void,
  ) => void;
  readonly cancel: (id: number) => void;
}

interface PendingQuestion {
  readonly resolve: (answer: ModelAnswer) => void;
  readonly reject: (error: unknown) => void;
  /** Called with tokens that arrive before the answer. */
  readonly onTokens: (tokens: TokensChunk) => void;
}

/** A conversation is compacted by upstreams only. */
type LocalQuestion = Exclude<QuestionKind, "compact">;

interface QuestionOptions {
  /** The request that the question is about. */
  readonly request?: ModelRequest;
  readonly onTokens?: PendingQuestion["onTokens"] | undefined;
}

/**
 * Questions to a local model other than generations. Every method rejects with `FailureError`, also if the process ends meanwhile; if
 * `signal` is aborted, with its reason.
 */
export class ModelQuestions {
  readonly #channel: QuestionChannel;
  readonly #pending = new Map<number, PendingQuestion>();

  readonly #handlers: QuestionHandlers<LocalQuestion> = {
    "count-tokens": (request, signal) => this.countTokens(request, signal),
    tokenize: (request, signal) => this.tokenize(request, signal),
    detokenize: (request, signal) => this.detokenize(request, signal),
    "apply-template": (request, signal) => this.applyTemplate(request, signal),
    slots: (_, signal) => this.slots(signal),
    "end-reasoning": ({ id }, signal) => this.endReasoning(id, signal),
    usage: ({ id }, signal) => this.usage(id, signal),
    embed: (request, signal) => this.embed(request, signal),
    rerank: (request, signal) => this.rerank(request, signal),
  };
  readonly kinds = Object.keys(this.#handlers) as readonly LocalQuestion[];

  constructor(channel: QuestionChannel) {
    this.#channel = channel;
  }

  /** Answers a question of one of `kinds`. */
  ask<K extends QuestionKind>(question: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>>;
  ask<K extends LocalQuestion>({ kind, request }: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>> {
    return this.#handlers[kind](request, signal);
  }

  /** Number of questions without an answer. */
  get pending(): number {
    return this.#pending.size;
  }

  /** Number of tokens of a prompt: the chat template renders it. */
  async countTokens(request: GenerationRequest, signal: AbortSignal): Promise<number> {
    return this.#countTokens(request, "count", signal, request.owner);
  }

  async tokenize({ input, withBytes }: TokenizeRequest, signal: AbortSignal): Promise<Tokenization> {
    const tokens: number[] = [];
    const bytes: (readonly number[])[] = [];
    const onTokens = (some: TokensChunk): void => {
      for (const token of some.tokens) tokens.push(token);
      for (const each of some.bytes ?? []) bytes.push(each);
    };
    const wants = withBytes ? "bytes" : "ids";
    if (input.kind === "chat") await this.#countTokens(input.request, wants, signal, input.request.owner, onTokens);
    else {
      const { text, addSpecial, parseSpecial } = input;
      await this.#countTokens(textRequest([text], addSpecial, parseSpecial), wants, signal, undefined, onTokens);
    }
    return { tokens, ...(withBytes && { bytes }) };
  }

  async detokenize({ tokens }: DetokenizeRequest, signal: AbortSignal): Promise<string> {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    let text = "";
    for (let from = 0; from < tokens.length; from += maxTokensPerMessage) {
      const some = tokens.slice(from, from + maxTokensPerMessage);
      const { bytes } = await this.#ask("bytes", () => ({ about: "bytes", tokens: some }), signal);
      text += decoder.decode(Buffer.from(bytes, "base64"), { stream: true });
    }
    return text + decoder.decode();
  }

  /** The prompt of a conversation, rendered by the chat template. */
  async applyTemplate(request: GenerationRequest, signal: AbortSignal): Promise<string> {
    const owner = ownerOf(request);
    const { text } = await this.#ask("prompt", (asked) => ({ about: "prompt", ...owner, asked }), signal, {
      // Nothing is generated, so the prompt may be longer than the context.
      request: { ...request, tokenizing: { addSpecial: false, parseSpecial: false } },
    });
    return text;
  }

  async embed(request: EmbeddingRequest, signal: AbortSignal): Promise<EmbeddingAnswer> {
    const { inputs, dimensions } = request;
    const more = { ...ownerOf(request), dimensions };
    const question = (asked: string): ModelQuestion => ({ about: "embeddings", ...more, asked });
    const { vectors, promptTokens } = await this.#ask("embeddings", question, signal, {
      request: textRequest(inputs, true, true),
    });
    return { vectors: vectors.map(vectorOf), promptTokens };
  }

  async rerank(request: RerankRequest, signal: AbortSignal): Promise<RerankAnswer> {
    const { query, documents, rawScores: raw = false } = request;
    const owner = ownerOf(request);
    return this.#ask("scores", (asked) => ({ about: "scores", ...owner, raw, asked }), signal, {
      request: textRequest([query, ...documents], false, false),
    });
  }

  async slots(signal: AbortSignal): Promise<readonly SlotState[]> {
    const { slots } = await this.#ask("slots", () => ({ about: "slots" }), signal);
    return slots;
  }

  async endReasoning(requestId: string, signal: AbortSignal): Promise<boolean> {
    const question: ModelQuestion = { about: "end-reasoning", requestId };
    return (await this.#ask("end-reasoning", () => question, signal)).wasReasoning;
  }

  async usage(requestId: string, signal: AbortSignal): Promise<Usage | null> {
    return (await this.#ask("usage", () => ({ about: "usage", requestId }), signal)).usage;
  }

  async #countTokens(
    request: ModelRequest,
    wants: "count" | "ids" | "bytes",
    signal: AbortSignal,
    owner: string | undefined,
    onTokens?: PendingQuestion["onTokens"],
  ): Promise<number> {
    const question = (asked: string): ModelQuestion => ({ about: "tokens", ...ownerOf({ owner }), asked, wants });
    const { count } = await this.#ask("tokens", question, signal, { request, onTokens });
    return count;
  }

  async #ask<About extends ModelAnswer["about"]>(
    about: About,
    question: (asked: string) => ModelQuestion,
    signal: AbortSignal,
    { request, onTokens = () => {} }: QuestionOptions = {},
  ): Promise<Extract<ModelAnswer, { readonly about: About }>> {
    const text = request ? written(request) : "";
    const { begin, end, send, cancel } = this.#channel;
    const id = begin();
    const onAbort = (): void => {
      cancel(id);
      this.#pending.get(id)?.reject(signal.reason);
    };
    try {
      signal.throwIfAborted();
      signal.addEventListener("abort", onAbort, { once: true });
      const answer = await new Promise<ModelAnswer>((resolve, reject) => {
        this.#pending.set(id, { resolve, reject, onTokens });
        const message = (asked: string): ToModel => ({ type: "look-up", id, question: question(asked) });
        send(
          id,
          text,
          message,
          () => this.#pending.has(id),
          (failure) => reject(new FailureError(failure)),
        );
      });
      if (answer.about !== about) throw new Error(`The model's process answered about ${answer.about}.`);
      return answer as Extract<ModelAnswer, { readonly about: About }>;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#pending.delete(id);
      end(id);
    }
  }

  /** Handles an answer of the model's process. */
  answer(id: number, answer: ModelAnswer): void {
    const pending = this.#pending.get(id);
    if (answer.about === "failure") pending?.reject(new FailureError(answer.failure));
    else if (answer.about === "some-tokens") pending?.onTokens(answer);
    else pending?.resolve(answer);
  }

  /** Rejects all pending questions. */
  failAll(failure: GenerationFailure): void {
    for (const { reject } of this.#pending.values()) reject(new FailureError(failure));
  }
}

function ownerOf({ owner }: { readonly owner?: string | undefined }): { readonly owner?: string } {
  return owner === undefined ? {} : { owner };
}

/** A request whose texts are tokenized and not generated from. */
function textRequest(prompts: TextPrompt["prompts"], addSpecial: boolean, parseSpecial: boolean): ModelRequest {
  return { prompt: { kind: "text", prompts }, sampling: {}, limits: {}, tokenizing: { addSpecial, parseSpecial } };
}

function written(request: ModelRequest): RequestText {
  try {
    return requestText(request);
  } catch (error) {
    throw new FailureError(unwritable(error));
  }
}

/** Decodes base64 of little-endian 32-bit floats. */
function vectorOf(base64: string): readonly number[] {
  const bytes = Buffer.from(base64, "base64");
  return Array.from({ length: bytes.length / 4 }, (_, at) => bytes.readFloatLE(at * 4));
}
