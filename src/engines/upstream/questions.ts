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
  Tokenization,
  TokenizeRequest,
} from "../../wire/core/engine.ts";
import type { GenerationEnd, GenerationFailure } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isObject, type JsonObject } from "../../wire/core/json.ts";
import type { ClientKey } from "../../wire/core/client-key.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { readEmbeddings, writeEmbeddingsRequest } from "../../wire/apis/embeddings/embeddings.ts";
import { readRanking, writeRerankRequest } from "../../wire/apis/rerank/rerank.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";
import { refusesState } from "../../wire/apis/adapt/state-refusals.ts";
import { promptTexts } from "../../wire/apis/adapt/truncation.ts";
import { sourcePath, type SourcePort, type SourceTokenCount } from "../../wire/apis/source-port.ts";
import { badAnswer } from "../../wire/apis/tolerant/read-failure.ts";
import { RepairLog } from "../../wire/apis/tolerant/repairs.ts";
import { parseTolerantly } from "../../wire/apis/tolerant/read-response.ts";
import { readText, readTokens, writeDetokenizeRequest, writeTokenizeRequest } from "../../wire/apis/tokens/tokens.ts";
import { requestIdHeader } from "./attempt.ts";
import type { OllamaModels } from "./ollama-models.ts";
import type { RequestTurns } from "./request-turns.ts";
import { stateSource, type TargetSet, type UpstreamTarget } from "./targets.ts";
import { readBody } from "./transport.ts";
import { answerTooLong, failureOfAnswer, transportFailure } from "./transport-failure.ts";

type UpstreamQuestion = Exclude<QuestionKind, "apply-template" | "slots" | "end-reasoning" | "usage">;

export interface QuestionContext {
  readonly targets: TargetSet;
  readonly source: SourcePort;
  /** Sent with every request. */
  readonly headers: Readonly<Record<string, string>>;
  readonly passKey: boolean;
  /** The maximum length of an answer, in characters. */
  readonly answerLimit: number;
  /** Members added to the body of a request for embeddings or a ranking. */
  readonly add: Readonly<Record<string, unknown>>;
  /** Only where the servers speak Ollama's own API. All of them count as the first one. */
  readonly ollama: OllamaModels | undefined;
  /** The upstream's own name of a model. */
  nameOf(model: string): string;
  /** The earlier turns of a conversation, with the states that each server gets. */
  turnsOf(request: GenerationRequest): RequestTurns;
  /** `model`: the upstream's own name. */
  profileOf(model: string): ServerProfile;
}

/** A request that is answered with one JSON value. */
interface WholeRequest {
  readonly path: string;
  /** The path replaces the base URL's `/v1`: llama.cpp's server and vLLM have `/tokenize` and `/detokenize` there. */
  readonly besideVersion?: boolean;
  /** The server's id for the request. */
  readonly id: string;
  /** The upstream's own name. */
  readonly model?: string;
  readonly body: object | ((target: UpstreamTarget) => object);
  /** Who made the conversation's latest state (`TargetSet.choose`). */
  readonly stateSource?: string | undefined;
  /** Whether the body is another one now, so that a target that has refused it is asked again. */
  changed?(refusal: GenerationFailure, target: UpstreamTarget): boolean;
  /** See `GenerationRequest`. */
  readonly clientKey: ClientKey | undefined;
  /** Sent in addition to those of the context. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Notified of each attempt at this model. */
  readonly observed?: { readonly model: string; readonly observer: GenerationObserver | undefined };
}

/** Sends questions about models, embeddings and rankings to an upstream, and reads the answers. Everything rejects with `FailureError`. */
export class UpstreamQuestions {
  readonly kinds: readonly UpstreamQuestion[];
  readonly #context: QuestionContext;
  readonly #handlers: QuestionHandlers<UpstreamQuestion> = {
    "count-tokens": (request, signal) => this.countTokens(request, signal),
    compact: (request, signal) => this.#compact(request, signal),
    tokenize: (request, signal) => this.#tokenize(request, signal),
    detokenize: (request, signal) => this.#detokenize(request, signal),
    embed: (request, signal, observer) => this.#embed(request, signal, observer),
    rerank: (request, signal, observer) => this.#rerank(request, signal, observer),
  };

  constructor(context: QuestionContext) {
    this.#context = context;
    const { tokenCount, compactPath } = context.source;
    const missing = new Set([tokenCount ? "" : "count-tokens", compactPath === undefined ? "compact" : ""]);
    this.kinds = (Object.keys(this.#handlers) as UpstreamQuestion[]).filter((kind) => !missing.has(kind));
  }

  /** Answers a question of one of `kinds`. */
  ask<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer: GenerationObserver | undefined,
  ): Promise<EngineAnswer<K>>;
  ask<K extends UpstreamQuestion>(
    { kind, request }: EngineQuestion<K>,
    signal: AbortSignal,
    observer: GenerationObserver | undefined,
  ): Promise<EngineAnswer<K>> {
    return this.#handlers[kind](request, signal, observer);
  }

  /** Only where the upstream's API can count tokens. */
  async countTokens(request: GenerationRequest, signal: AbortSignal): Promise<number> {
    const { name, tokenCount } = this.#context.source;
    if (!tokenCount) throw new Error(`The API ${name} cannot count tokens.`);
    const answer = await this.#sendConversation(request, tokenCount.path, tokenCount.writeRequest, signal);
    const tokens = tokenCount.read(answer);
    if (tokens === undefined) throw new FailureError(badAnswer("The upstream's answer has no count of tokens."));
    return tokens;
  }

  /** Only where the upstream's API can compact. */
  async #compact(request: GenerationRequest, signal: AbortSignal): Promise<JsonObject> {
    const { name, compactPath, writeRequest } = this.#context.source;
    if (compactPath === undefined) throw new Error(`The API ${name} cannot compact.`);
    const answer = await this.#sendConversation(request, compactPath, writeRequest, signal);
    if (isObject(answer)) return answer;
    throw new FailureError(badAnswer("The upstream's answer is no object."));
  }

  /** Sends a conversation, with the states that each server gets, and returns the parsed answer. */
  async #sendConversation(
    request: GenerationRequest,
    path: SourceTokenCount["path"],
    write: SourceTokenCount["writeRequest"],
    signal: AbortSignal,
  ): Promise<unknown> {
    const { source, nameOf, profileOf, turnsOf } = this.#context;
    const { id, passthrough, clientKey } = request;
    const model = nameOf(request.model);
    const turns = turnsOf(request);
    await turns.recall();
    return this.#send(
      {
        path: sourcePath(path, model, false),
        id,
        model,
        clientKey,
        body: (target) => write(turns.fitted(request, stateSource(target, model)).request, profileOf(model)),
        headers: passthrough?.dialect === source.name ? passthrough.headers : undefined,
        stateSource: turns.latestSource,
        changed: (refusal, target) => refusesState(refusal) && turns.drop(stateSource(target, model)),
      },
      signal,
    );
  }

  /** The tokens of a conversation, or at least those of its texts; undefined: the server does not count them. */
  async countPrompt(request: GenerationRequest, signal: AbortSignal): Promise<number | undefined> {
    const { id, model, prompt } = request;
    try {
      if (this.#context.source.tokenCount) {
        const tokens = await this.countTokens(request, signal).catch(unlessOther);
        if (tokens !== undefined) return tokens;
      }
      const base = { id, model, withBytes: false, body: {} };
      try {
        return (await this.#tokenize({ ...base, input: { kind: "chat", request } }, signal)).tokens.length;
      } catch {
        if (prompt.kind !== "chat") return undefined;
        const text = promptTexts(request).join("\n");
        const input = { kind: "text", text, addSpecial: false, parseSpecial: false } as const;
        return (await this.#tokenize({ ...base, input }, signal)).tokens.length;
      }
    } catch (error) {
      if (error instanceof FailureError || signal.aborted) return undefined;
      throw error;
    }
  }

  async #tokenize(request: TokenizeRequest, signal: AbortSignal): Promise<Tokenization> {
    const body = writeTokenizeRequest(request, this.#context.nameOf(request.model));
    const tokens = readTokens(await this.#sendBesideVersion("/tokenize", request.id, body, signal));
    // llama.cpp's server does not tokenize conversations: it answers with an empty list, where every template writes some tokens.
    if (tokens === undefined || (request.input.kind === "chat" && tokens.tokens.length === 0))
      throw notAnswered("/tokenize");
    return tokens;
  }

  async #detokenize(request: DetokenizeRequest, signal: AbortSignal): Promise<string> {
    const body = writeDetokenizeRequest(request, this.#context.nameOf(request.model));
    const text = readText(await this.#sendBesideVersion("/detokenize", request.id, body, signal));
    if (text === undefined) throw notAnswered("/detokenize");
    return text;
  }

  async #embed(
    request: EmbeddingRequest,
    signal: AbortSignal,
    observer: GenerationObserver | undefined,
  ): Promise<EmbeddingAnswer> {
    const { id, inputs, dimensions, clientKey } = request;
    const model = this.#context.nameOf(request.model);
    const { source, add, ollama, targets, profileOf } = this.#context;
    const own = source.embeddings;
    const written = { ...request, model };
    const [target] = targets.targets;
    if (target) await ollama?.prepare(model, target);
    const profile = { ...profileOf(model), ...(target && ollama && { ollama: ollama.stateOf(model, target) }) };
    const body = { ...(own ? own.writeRequest(written, profile) : writeEmbeddingsRequest(written)), ...add };
    if (target) ollama?.sent(model, target, body);
    const path = sourcePath(own?.path ?? "/embeddings", model, false);
    const answer = await this.#send({ path, id, model, body, clientKey, observed: { model, observer } }, signal);
    return readEmbeddings(own ? own.toOpenAi(answer) : answer, inputs.length, dimensions);
  }

  async #rerank(
    request: RerankRequest,
    signal: AbortSignal,
    observer: GenerationObserver | undefined,
  ): Promise<RerankAnswer> {
    const { id, documents, clientKey } = request;
    const model = this.#context.nameOf(request.model);
    const body = { ...writeRerankRequest({ ...request, model }), ...this.#context.add };
    const answer = await this.#send({ path: "/rerank", id, body, clientKey, observed: { model, observer } }, signal);
    return readRanking(answer, documents.length);
  }

  /** Rejects with status 501 if the upstream does not have this path. */
  async #sendBesideVersion(path: string, id: string, body: object, signal: AbortSignal): Promise<unknown> {
    try {
      return await this.#send({ path, besideVersion: true, id, body, clientKey: undefined }, signal);
    } catch (error) {
      if (error instanceof FailureError && [404, 405, 501].includes(error.failure.status)) throw notAnswered(path);
      throw error;
    }
  }

  /** Sends a request and returns its parsed answer, of any shape. If a target fails, the next one is asked. */
  async #send(request: WholeRequest, signal: AbortSignal): Promise<unknown> {
    const { targets } = this.#context;
    const { model = "", observer } = request.observed ?? {};
    const tried = new Set<UpstreamTarget>();
    for (;;) {
      const target = targets.choose(tried, undefined, request.stateSource);
      tried.add(target);
      target.outstanding++;
      const attempt = observer?.attempt({ url: target.url, model });
      try {
        const answer = await this.#sendTo(target, request, attempt?.headers, signal);
        target.succeeded();
        attempt?.ended({ kind: "done" });
        return answer;
      } catch (error) {
        attempt?.ended(endOf(error, signal));
        if (!(error instanceof FailureError)) throw error;
        if (request.changed?.(error.failure, target)) {
          tried.delete(target);
          continue;
        }
        if (error.failure.status < 500) throw error;
        targets.failed(target, error.failure);
        if (signal.aborted || !targets.hasFresh(tried)) throw error;
      } finally {
        target.outstanding--;
      }
    }
  }

  /** `traceHeaders`: win over all others. */
  async #sendTo(
    target: UpstreamTarget,
    request: WholeRequest,
    traceHeaders: Readonly<Record<string, string>> | undefined,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { headers, answerLimit, passKey, source } = this.#context;
    const clientKey = passKey ? request.clientKey : undefined;
    const secret = clientKey ?? target.credential;
    let text: string;
    let answer;
    try {
      answer = await target.transport.request({
        method: "POST",
        path: request.besideVersion ? target.rootPath(request.path) : target.path(request.path, request.model),
        headers: {
          ...headers,
          ...request.headers,
          ...traceHeaders,
          ...clientKey?.headers(source),
          "content-type": "application/json",
          accept: "application/json",
          ...requestIdHeader(request.id),
        },
        body: JSON.stringify(typeof request.body === "function" ? request.body(target) : request.body),
        signal,
      });
      text = await readBody(answer.body, answerLimit, () => new FailureError(answerTooLong(answerLimit).failure));
    } catch (error) {
      if (error instanceof FailureError) throw error;
      throw new FailureError(transportFailure(error instanceof Error ? error : new Error(String(error)), target.url));
    }
    const repairs = new RepairLog();
    if (answer.statusCode !== 200)
      throw new FailureError(
        failureOfAnswer(answer.statusCode, answer.headers, secret?.hiddenIn(text) ?? text, repairs),
      );
    return parseTolerantly(text, repairs);
  }
}

/** undefined for a `FailureError`. Rethrows any other error. */
function unlessOther(error: unknown): undefined {
  if (!(error instanceof FailureError)) throw error;
}

function endOf(error: unknown, { aborted }: AbortSignal): GenerationEnd {
  if (aborted || !(error instanceof FailureError)) return { kind: "client-gone" };
  return { kind: "upstream-error", failure: error.failure };
}

function notAnswered(path: string): FailureError {
  return new FailureError({
    kind: "internal",
    status: 501,
    message: `The model's server has no ${path}, so its tokens are not known.`,
  });
}
