import { sourcePorts } from "../../wire/apis/ports.ts";
import { sourcePath, type SourcePort } from "../../wire/apis/source-port.ts";
import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionKind,
  ServerProfileReport,
  UpstreamUrl,
} from "../../wire/core/engine.ts";
import { canAnswer } from "../../wire/core/engine.ts";
import { type GenerationEvent, type GenerationFailure, isVisible } from "../../wire/core/events.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import { Relay } from "../../wire/core/relay.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { UpstreamOptions } from "./options.ts";
import { shownUrl } from "./targets.ts";

type Batch = readonly GenerationEvent[];

/**
 * An upstream whose API nobody has named, and whose list of models is OpenAI's: it speaks chat, or Responses alone. Only requests can tell.
 * While none has been answered, a conversation whose chat request is refused because the server does not have the path is sent again as
 * Responses. The API of the first answer is that of all further conversations, until the server is opened again.
 */
export class UnnamedApiEngine implements Engine {
  readonly #options: UpstreamOptions;
  readonly #chat: Engine;
  readonly #openResponses: () => Promise<Engine>;
  #responses: Promise<Engine> | undefined;
  /** The engine of the API that has answered. */
  #found: Engine | undefined;
  /** The APIs whose requests are forwarded unchanged. */
  forwards: readonly string[] = ["chat", "completions"];

  /** `openResponses` opens the same upstream with Responses; called at most once until it rejects. */
  constructor(options: UpstreamOptions, chat: Engine, openResponses: () => Promise<Engine>) {
    this.#options = options;
    this.#chat = chat;
    this.#openResponses = openResponses;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<Batch> {
    // Responses cannot continue a text.
    if (request.prompt.kind !== "chat") return this.#chat.generate(request, observer);
    if (this.#found) return this.#found.generate(request, observer);
    let api: "chat" | "responses" = "chat";
    let engine = this.#chat;
    const answered = (batch: Batch): Batch => {
      if (!this.#found && batch.some(isVisible)) this.#find(api, engine);
      return batch;
    };
    const ask = async (relay: Relay): Promise<Batch> => {
      const first = await relay.ask(() => engine.generate(request, observer));
      const noChat = missingPath(first);
      if (!noChat || relay.hasEnded) return answered(first);
      try {
        engine = await (this.#responses ??= this.#openResponses());
      } catch {
        this.#responses = undefined;
        return first;
      }
      api = "responses";
      const second = await relay.ask(() => engine.generate(request, observer));
      const noResponses = missingPath(second);
      return noResponses
        ? [{ type: "end", end: { kind: "upstream-error", failure: this.#hasNeither(noChat, noResponses) } }]
        : answered(second);
    };
    return new Relay(ask, { read: answered });
  }

  #find(api: "chat" | "responses", engine: Engine): void {
    this.#found = engine;
    if (api === "chat") return;
    this.forwards = ["responses", "completions"];
    this.#options.log?.(
      "has no chat completions and answers Responses: it gets Responses from now on, and with `api: responses` from the start",
      "info",
      { urls: this.#options.urls.map(shownUrl) },
    );
  }

  #hasNeither(noChat: GenerationFailure, noResponses: GenerationFailure): GenerationFailure {
    const { name, urls } = this.#options;
    const [url = ""] = urls.map(shownUrl);
    const at = ({ path }: SourcePort, { status }: GenerationFailure): string =>
      `${url.replace(/\/+$/, "")}${sourcePath(path, "", false)} (status ${status})`;
    return {
      kind: "not-found",
      status: 404,
      param: null,
      code: null,
      message:
        `The upstream ${name} answers conversations neither at ${at(sourcePorts.chat, noChat)} nor at ` +
        `${at(sourcePorts.responses, noResponses)}. Check its URL, which usually ends with /v1, or name its API: "api" in the configuration.`,
    };
  }

  models(): readonly ModelInfo[] {
    return this.#chat.models();
  }

  questions(): readonly QuestionKind[] {
    return this.#chat.questions?.() ?? [];
  }

  async ask<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>> {
    if (!canAnswer(this.#chat, question.kind)) throw new Error(`The upstream does not answer ${question.kind}.`);
    return this.#chat.ask(question, signal, observer);
  }

  health(): EngineHealth {
    return this.#current.health();
  }

  profiles(): readonly ServerProfileReport[] {
    return this.#current.profiles?.() ?? [];
  }

  forget(model: string, which: { readonly url?: string; readonly lesson?: string }): readonly string[] {
    return this.#current.forget?.(model, which) ?? [];
  }

  urls(): readonly UpstreamUrl[] {
    return this.#current.urls?.() ?? [];
  }

  get #current(): Engine {
    return this.#found ?? this.#chat;
  }

  async close(graceMs: number): Promise<void> {
    const responses = await this.#responses?.catch(() => undefined);
    await Promise.all([this.#chat.close(graceMs), responses?.close(graceMs)]);
  }
}

/**
 * The failure of a request whose path a server does not have. A 404 about the request's model, or another part of the request, is the answer
 * of a server that has the path.
 */
function missingPath(batch: Batch): GenerationFailure | undefined {
  const last = batch.at(-1);
  if (last?.type !== "end" || !("failure" in last.end) || batch.some(isVisible)) return undefined;
  const { failure } = last.end;
  const { status, param = null, code, message } = failure;
  const isAboutRequest = param !== null || /model/i.test(`${code} ${message}`);
  return status === 405 || (status === 404 && !isAboutRequest) ? failure : undefined;
}
