import { cancellable } from "../../wire/core/cancellable.ts";
import type {
  Engine,
  EngineAnswer,
  EngineHealth,
  EngineQuestion,
  ModelInfo,
  QuestionKind,
} from "../../wire/core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { GenerationObserver, LogListener } from "../../wire/core/generation-observer.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import {
  defaultLoadTimeout,
  defaultBatchSize,
  defaultMaxTokenGap,
  defaultQueueLimit,
  defaultSlots,
} from "./defaults.ts";
import { Delivery } from "./delivery.ts";
import { missingEndpoint } from "./file/local-endpoints.ts";
import { publicAdapters } from "./public-adapters.ts";
import { HangWatch, RestartingProcess, type ModelMessage, ModelProcess, withoutGpu } from "./model-process.ts";
import { ModelQuestions } from "./model-questions.ts";
import type { LlamaEngineOptions } from "./options.ts";
import type { SchedulerState, OpenedModel, OpenModelMessage, StepMessage, ToModel } from "./protocol.ts";
import { requestText, unwritable, type RequestText } from "./request-text.ts";
import { hasForeignImages, readImages } from "./vision/read-images.ts";
import { defaultCacheType } from "./cache-type.ts";

/** How long a process that has work may make no progress, in milliseconds. */
const defaultStepTimeout = 120_000;
/** Longest decode step of a prompt that no other work waits for, in milliseconds; less where `stepTimeout` is short. */
const maxBatchMs = 10_000;

/** A local model in a process of its own, which is restarted when it crashes. Opened by `openLlamaEngine`. */
class LlamaEngine implements Engine {
  readonly #options: LlamaEngineOptions;
  readonly #open: OpenModelMessage;
  #model: ModelInfo;
  #models: readonly ModelInfo[];
  /** The ids of open generations and questions. */
  readonly #lifecycle = new EngineLifecycle<number>();
  readonly #deliveries = new Map<number, Delivery>();
  /** Requests that arrived while the process was restarting. */
  readonly #unsent = new Map<number, Submission>();
  readonly #questions: ModelQuestions;
  readonly #watch: HangWatch;
  readonly #process: RestartingProcess;
  #modelState: SchedulerState | undefined;
  #nextId = 1;

  constructor(
    options: LlamaEngineOptions,
    open: OpenModelMessage,
    process: ModelProcess,
    opened: OpenedModel,
    created: number,
  ) {
    this.#options = options;
    this.#open = { ...open, model: opened.path, contextSize: opened.contextSize };
    this.#process = new RestartingProcess(process, {
      open: this.#open,
      loadTimeoutMs: options.loadTimeout ?? defaultLoadTimeout,
      lifecycle: this.#lifecycle,
      listeners: {
        onMessage: (message) => this.receive(message),
        onGone: (how) => this.processGone(how),
        log: (line, level) => options.log?.(line, level),
      },
      onReady: ({ device }) => {
        this.#model = { ...this.#model, device: device.text };
        this.#models = [this.#model];
        this.#sendUnsent();
      },
      onLate: (message) => this.#rejectUnsent(message),
    });
    this.#questions = new ModelQuestions({
      begin: () => this.#beginQuestion(),
      end: (id) => this.#lifecycle.end(id),
      send: (id, text, message, isWanted, fail) => this.#send(id, text, message, isWanted, fail),
      cancel: (id) => this.#process.current.send({ type: "cancel", id }),
    });
    const timeoutMs = options.stepTimeout ?? defaultStepTimeout;
    this.#watch = new HangWatch(timeoutMs, {
      isBusy: () => this.#isBusy(),
      ping: () => this.#process.current.send({ type: "ping" }),
      onHung: () => this.#process.current.kill(`made no progress for ${timeoutMs / 1000} seconds and was ended`),
    });
    this.#model = {
      id: options.name ?? fileStem(opened.path),
      created,
      ownedBy: "local",
      contextLength: opened.contextSize,
      prewarms: "local",
      takesImages: opened.takes.images === true,
      takesAudio: opened.takes.audio === true,
      ...(open.adapters && { adapters: publicAdapters(open.adapters) }),
      device: opened.device.text,
      endpoints: opened.endpoints,
    };
    this.#models = [this.#model];
  }

  models(): readonly ModelInfo[] {
    return this.#models;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): AsyncIterable<readonly GenerationEvent[]> {
    return cancellable((signal) => this.#run(request, signal, observer));
  }

  questions(): readonly QuestionKind[] {
    return this.#questions.kinds;
  }

  async ask<K extends QuestionKind>(question: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>> {
    const { kind } = question;
    const endpoint = kind === "embed" ? "embeddings" : kind === "rerank" ? "rerank" : undefined;
    const missing = endpoint && missingEndpoint(this.#model, endpoint);
    if (missing) throw new FailureError(missing);
    return this.#questions.ask(await this.#questionWithImages(question, signal), signal);
  }

  async *#run(
    request: GenerationRequest,
    signal: AbortSignal,
    observer?: GenerationObserver,
  ): AsyncGenerator<readonly GenerationEvent[]> {
    const id = this.#nextId++;
    const delivery = new Delivery((tokens) => this.#process.current.send({ type: "taken", id, tokens }), observer);
    const abandon = (): void => this.#abandon(id, delivery);
    if (signal.aborted) delivery.end({ kind: "client-gone" });
    else if (this.#readsImages(request)) void this.#submitWithImages(id, request, delivery, signal);
    else this.#submit(id, request, delivery);
    signal.addEventListener("abort", abandon, { once: true });
    try {
      for (;;) {
        const batch = await delivery.next();
        if (!batch) return;
        yield batch;
      }
    } finally {
      signal.removeEventListener("abort", abandon);
      this.#abandon(id, delivery);
    }
  }

  /** The request has images that are not in a form that the model's process takes. */
  #readsImages(request: GenerationRequest): boolean {
    return this.#model.takesImages === true && this.#options.readImage !== undefined && hasForeignImages(request);
  }

  async #submitWithImages(
    id: number,
    request: GenerationRequest,
    delivery: Delivery,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const read = await this.#withImages(request, signal);
      if (signal.aborted) delivery.end({ kind: "client-gone" });
      else this.#submit(id, read, delivery);
    } catch (error) {
      if (signal.aborted) return delivery.end({ kind: "client-gone" });
      if (!(error instanceof FailureError)) throw error;
      delivery.end({ kind: "rejected", failure: error.failure });
    }
  }

  async #withImages(request: GenerationRequest, signal: AbortSignal): Promise<GenerationRequest> {
    const { readImage } = this.#options;
    if (!readImage || !this.#readsImages(request)) return request;
    const origin = { owner: request.owner, signal };
    return readImages(request, (url) => readImage(url, origin));
  }

  async #questionWithImages<K extends QuestionKind>(
    question: EngineQuestion<K>,
    signal: AbortSignal,
  ): Promise<EngineQuestion<K>> {
    const { kind, request } = question as EngineQuestion;
    if (kind === "count-tokens" || kind === "apply-template")
      return { kind, request: await this.#withImages(request, signal) } as EngineQuestion<K>;
    if (kind !== "tokenize" || request.input.kind !== "chat") return question;
    const input = { ...request.input, request: await this.#withImages(request.input.request, signal) };
    return { kind, request: { ...request, input } } as EngineQuestion<K>;
  }

  /** Sends a request to the model's process, or keeps it until the process has restarted. */
  #submit(id: number, request: GenerationRequest, delivery: Delivery): void {
    const { id: requestId, owner } = request;
    const rejection = this.#rejection(owner);
    if (rejection) return delivery.end(rejection);
    let text: RequestText;
    try {
      text = requestText(delivery.observer?.inspection ? { ...request, inspected: true } : request);
    } catch (error) {
      return delivery.end({ kind: "rejected", failure: unwritable(error) });
    }
    this.#deliveries.set(id, delivery);
    this.#lifecycle.begin(id);
    const submission = { id, requestId, owner, text };
    if (this.#lifecycle.state === "ready") this.#sendRequest(submission);
    else this.#unsent.set(id, submission);
  }

  #sendRequest({ id, requestId, owner, text }: Submission): void {
    this.#send(
      id,
      text,
      (asked) => ({ type: "generate", id, requestId, owner, requestJson: asked }),
      () => this.#deliveries.has(id),
      (failure) => this.#finish(id, { kind: "rejected", failure }),
    );
  }

  /** Sends the message that `message` makes of a text, in chunks if the text is long. `fail` is called if it cannot be written. */
  #send(
    id: number,
    text: RequestText,
    message: (asked: string) => ToModel,
    isWanted: () => boolean,
    fail: (failure: GenerationFailure) => void,
  ): void {
    this.#watch.start();
    const process = this.#process.current;
    if (typeof text === "string") return process.send(message(text));
    process.sendChunks(id, text, isWanted, message).catch((error: unknown) => {
      process.send({ type: "cancel", id });
      fail(unwritable(error));
    });
  }

  /** The process has work to do, or a canceled request to drop. */
  #isBusy(): boolean {
    if (this.#questions.pending > 0) return true;
    return this.#deliveries.size > this.#unsent.size || (this.#modelState?.busy ?? 0) > 0;
  }

  /** Why requests of this owner are rejected; undefined if they are accepted. */
  #rejection(owner: string | undefined): GenerationEnd | undefined {
    const wrong = missingEndpoint(this.#model, "completions");
    if (wrong) return { kind: "rejected", failure: wrong };
    const { state, message = "The model failed." } = this.#lifecycle.health();
    if (state === "closed") return shuttingDown;
    if (state === "failed") return { kind: "rejected", failure: unavailable(message, this.#process.restartIn) };
    const isQueueFull = state === "restarting" && this.#unsentOf(owner) >= this.#open.queueLimit;
    return isQueueFull ? { kind: "rejected", failure: unavailable("The model is restarting.", 2) } : undefined;
  }

  #unsentOf(owner: string | undefined): number {
    return [...this.#unsent.values()].filter((submission) => submission.owner === owner).length;
  }

  /** Returns the id of a new question. Throws `FailureError` if the model is not ready. */
  #beginQuestion(): number {
    const { state, message = "The model is restarting." } = this.#lifecycle.health();
    if (state === "closed") throw new FailureError(shuttingDown.failure);
    if (state !== "ready") throw new FailureError(unavailable(message, this.#process.restartIn));
    const id = this.#nextId++;
    this.#lifecycle.begin(id);
    return id;
  }

  #abandon(id: number, delivery: Delivery): void {
    if (!this.#deliveries.has(id)) return;
    delivery.end({ kind: "client-gone" });
    if (!this.#unsent.delete(id)) this.#process.current.send({ type: "cancel", id });
    this.#forget(id);
  }

  #finish(id: number, end: GenerationEnd): void {
    this.#deliveries.get(id)?.end(end);
    this.#forget(id);
  }

  #forget(id: number): void {
    this.#deliveries.delete(id);
    this.#lifecycle.end(id);
  }

  /** Handles a message of the model's process. */
  receive(message: ModelMessage): void {
    switch (message.type) {
      case "step":
        return this.#receiveStep(message);
      case "pong":
        return this.#watch.sign(message.turn);
      case "cache-missed":
        return this.#deliveries.get(message.id)?.observer?.cacheMissed(message.miss);
      case "looked-up":
        return this.#questions.answer(message.id, message.answer);
      case "prompts": {
        const inspection = this.#deliveries.get(message.id)?.observer?.inspection;
        for (const prompt of message.prompts) inspection?.prompt(prompt);
      }
    }
  }

  #receiveStep({ state, results }: StepMessage): void {
    this.#modelState = state;
    for (const [id, tokens, events, written] of results) {
      const delivery = this.#deliveries.get(id);
      if (!delivery) continue;
      if (written) for (const [choice, text] of written) delivery.observer?.inspection?.rawText(choice, text);
      delivery.push(events, tokens);
      const last = events.at(-1);
      if (last?.type === "end" && last.end.kind === "done") this.#process.succeeded();
      if (delivery.ended) this.#forget(id);
    }
  }

  /** Handles a crash of the model's process: its requests fail, and it is restarted unless the engine is closing. */
  processGone(how: string): void {
    this.#modelState = undefined;
    this.#watch.stop();
    const closing = this.#lifecycle.state === "closed";
    this.#options.log?.(`The model's process ${how}${closing ? "" : "; it is started again"}.`, "warn");
    const failure = unavailable(
      `The model's process ${how} while it generated. It is being restarted; please retry.`,
      2,
    );
    for (const id of this.#deliveries.keys())
      if (!this.#unsent.has(id)) this.#finish(id, { kind: "engine-error", failure });
    this.#questions.failAll(failure);
    if (!closing) this.#process.restart();
  }

  #sendUnsent(): void {
    const waiting = [...this.#unsent.values()];
    this.#unsent.clear();
    for (const submission of waiting) this.#sendRequest(submission);
  }

  #rejectUnsent(message: string): void {
    const failure = unavailable(message, this.#process.restartIn);
    for (const id of this.#unsent.keys()) this.#finish(id, { kind: "rejected", failure });
    this.#unsent.clear();
  }

  health(): EngineHealth {
    const state = this.#modelState;
    const generates = missingEndpoint(this.#model, "completions") === undefined;
    return {
      ...this.#lifecycle.health(),
      ...(generates && { slots: { busy: state?.busy ?? 0, total: this.#open.slots } }),
      queued: (state?.queued ?? 0) + this.#unsent.size,
      counters: { ...state?.counters, restarts: this.#process.restarts },
    };
  }

  /** The id of the process that holds the model. */
  get processId(): number | undefined {
    return this.#process.current.pid;
  }

  close(graceMs: number): Promise<void> {
    this.#process.cancelRestart();
    return this.#lifecycle.close(graceMs, {
      stop: (id) => {
        this.#questions.answer(id, { about: "failure", failure: shuttingDown.failure });
        this.#finish(id, shuttingDown);
      },
      release: () => {
        this.#watch.stop();
        this.#questions.failAll(shuttingDown.failure);
        return this.#open.keepCache ? this.#process.current.leave() : this.#process.current.stop();
      },
    });
  }
}

/** A request to the model's process. */
interface Submission {
  readonly id: number;
  /** The server's id. */
  readonly requestId: string;
  readonly owner: string | undefined;
  readonly text: RequestText;
}

function unavailable(message: string, retryAfterSeconds: number): GenerationFailure {
  return { kind: "unavailable", message, status: 503, param: null, code: null, retryAfterSeconds };
}

/** The name of a file without its folder and `.gguf`. */
function fileStem(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).replace(/\.gguf$/i, "");
}

/**
 * Opens a local model with llama.cpp in a process of its own. Resolves when the model is loaded; rejects with `ModelOpenError`, whose
 * message is one sentence for the user.
 */
export async function openLlamaEngine(options: LlamaEngineOptions): Promise<Engine> {
  const { readImage: _, signal, onProgress, log: listener, ...settings } = options;
  const {
    name = fileStem(options.model),
    stepTimeout = defaultStepTimeout,
    loadTimeout = defaultLoadTimeout,
  } = options;
  let open: OpenModelMessage = {
    ...settings,
    type: "open",
    name,
    slots: options.slots ?? defaultSlots,
    batchSize: options.batchSize ?? defaultBatchSize,
    maxTokenGap: options.maxTokenGap ?? defaultMaxTokenGap,
    maxBatchMs: Math.min(maxBatchMs, stepTimeout / 8),
    gpu: options.gpu ?? "auto",
    cacheTypeK: options.cacheTypeK ?? defaultCacheType,
    cacheTypeV: options.cacheTypeV ?? defaultCacheType,
    adapters: options.adapters?.length === 0 ? undefined : options.adapters,
    queueLimit: options.queueLimit ?? defaultQueueLimit,
    speculation: options.speculation ?? "auto",
  };
  let engine: LlamaEngine | undefined;
  const log: LogListener = (line, level) => listener?.(line, level);
  const start = (): ModelProcess =>
    new ModelProcess(open, loadTimeout, {
      onMessage: (message) => engine?.receive(message),
      onGone: (how) => engine?.processGone(how),
      onProgress: (progress) => onProgress?.(progress),
      log,
    });
  let process = start();
  const stop = (): void => void process.stop();
  signal?.addEventListener("abort", stop, { once: true });
  if (signal?.aborted === true) stop();
  try {
    const opened = await process.opened.catch((error: unknown) => {
      const next = signal?.aborted === true || !process.crashed ? open : withoutGpu(open, process, log);
      if (next === open) throw error;
      open = next;
      process = start();
      return process.opened;
    });
    engine = new LlamaEngine(options, open, process, opened, Math.floor(Date.now() / 1000));
  } finally {
    signal?.removeEventListener("abort", stop);
  }
  return engine;
}
