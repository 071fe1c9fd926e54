import { canAnswer } from "../../wire/core/engine.ts";
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
import type { GenerationEvent, GenerationFailure } from "../../wire/core/events.ts";
import type { GenerationObserver } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { Log } from "../server/log.ts";
import type { OpenedEngine } from "./open-options.ts";

const firstPauseMs = 1000;
const maxPauseMs = 15_000;
/** An attempt is given up after this time: where timers end with the request that set them, it may never end by itself. */
const attemptMs = 60_000;

export interface LateOptions {
  readonly name: string;
  readonly log: Log;
  /** For people: without credentials. */
  readonly urls: readonly string[];
  readonly open: () => Promise<OpenedEngine>;
}

/** Stands for a server that did not answer when it was opened: it has no models until that answers, and is it from then on. */
export class LateEngine implements Engine {
  readonly #options: LateOptions;
  #opened: OpenedEngine | undefined;
  #message: string;
  #pauseMs = firstPauseMs;
  /** By the clock of `performance.now`. */
  #nextAt: number;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `cause`: why it could not be opened. */
  constructor(options: LateOptions, cause: unknown) {
    this.#options = options;
    this.#message = sentenceOf(cause);
    this.#nextAt = performance.now();
    options.log.warn(
      { model: options.name, error: this.#message },
      "does not answer yet; it is asked again until it does",
    );
    this.#later();
  }

  get forwards(): readonly string[] {
    return this.#opened?.forwards ?? [];
  }

  models(): readonly ModelInfo[] {
    if (this.#opened) return this.#opened.engine.models();
    // The timer may be gone with the request that set it, so a request that looks for a model tries, too.
    if (!this.#isClosed && performance.now() >= this.#nextAt) void this.#try();
    return none;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<readonly GenerationEvent[]> {
    return this.#opened ? this.#opened.engine.generate(request, observer) : absent(this.#options.name);
  }

  questions(): readonly QuestionKind[] {
    return this.#opened?.engine.questions?.() ?? [];
  }

  async ask<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): Promise<EngineAnswer<K>> {
    const engine = this.#opened?.engine;
    if (!engine || !canAnswer(engine, question.kind)) throw new Error(`The upstream does not answer ${question.kind}.`);
    return engine.ask(question, signal, observer);
  }

  health(): EngineHealth {
    if (this.#opened) return this.#opened.engine.health();
    return this.#isClosed ? { state: "closed" } : { state: "failed", message: this.#message };
  }

  profiles(): readonly ServerProfileReport[] {
    return this.#opened?.engine.profiles?.() ?? [];
  }

  forget(model: string, which: { readonly url?: string; readonly lesson?: string }): readonly string[] {
    return this.#opened?.engine.forget?.(model, which) ?? [];
  }

  urls(): readonly UpstreamUrl[] {
    if (this.#opened) return this.#opened.engine.urls?.() ?? [];
    return this.#options.urls.map((url) => ({ url, state: "absent", open: 0, retries: 0, ejections: 0 }));
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#opened?.engine.close(graceMs);
  }

  #later(): void {
    this.#nextAt = performance.now() + this.#pauseMs;
    this.#timer = setTimeout(() => void this.#try(), this.#pauseMs);
    // Elsewhere than in Node a timer is a number.
    if (typeof this.#timer === "object") this.#timer.unref();
    this.#pauseMs = Math.min(maxPauseMs, this.#pauseMs * 2);
  }

  async #try(): Promise<void> {
    clearTimeout(this.#timer);
    this.#nextAt = performance.now() + attemptMs;
    const { name, log, open } = this.#options;
    let opened: OpenedEngine;
    try {
      opened = await open();
    } catch (error) {
      this.#message = sentenceOf(error);
      log.debug({ model: name, error: this.#message }, "does not answer yet");
      if (!this.#isClosed && !this.#opened) this.#later();
      return;
    }
    // Of two attempts the first wins.
    if (this.#isClosed || this.#opened) return opened.engine.close(0);
    this.#opened = opened;
    log.info({ model: name, models: opened.engine.models().map(({ id }) => id) }, "answers now");
  }
}

const none: readonly ModelInfo[] = [];

async function* absent(name: string): AsyncGenerator<readonly GenerationEvent[]> {
  const failure: GenerationFailure = {
    kind: "unavailable",
    message: `The upstream ${name} does not answer.`,
    status: 503,
    param: null,
    code: null,
    retryAfterSeconds: 5,
  };
  yield [{ type: "end", end: { kind: "rejected", failure } }];
}

function sentenceOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
