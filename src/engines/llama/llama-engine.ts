import type { CacheMiss } from "../../core/cache-miss.ts";
import { cancellable } from "../../core/cancellable.ts";
import type { Engine, EngineAnswer, EngineHealth, EngineQuestion, ModelInfo, QuestionKind } from "../../core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { GenerationObserver } from "../../core/generation-observer.ts";
import type { InspectedPrompt } from "../../core/inspection.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { askedText, nestedTooDeeply, type AskedText } from "./asked-text.ts";
import { defaultLoadTimeoutMs } from "./defaults.ts";
import { Delivery } from "./delivery.ts";
import { HangWatch } from "./hang-watch.ts";
import { KeptProcess } from "./kept-process.ts";
import { listedAdapters } from "./listed-adapters.ts";
import { LookUps } from "./look-ups.ts";
import { ModelQuestions, type MoreOfQuestion } from "./model-questions.ts";
import type { ModelProcess, ModelProcessListeners } from "./model-process.ts";
import type { LlamaEngineOptions } from "./options.ts";
import type {
  Answer,
  GenerateMessage,
  ModelState,
  OpenedModel,
  OpenMessage,
  Question,
  StepMessage,
  ToModel,
} from "./protocol.ts";
import { checkEndpoint, wrongEndpoint } from "./wrong-endpoint.ts";

/** How long a process that has work may make no progress. */
const defaultStepTimeoutMs = 120_000;
/** A local model, in a process of its own that comes back when it crashes. Opened by `openLlamaEngine`. */
export class LlamaEngine implements Engine {
  readonly #options: LlamaEngineOptions;
  readonly #open: OpenMessage;
  readonly #model: ModelInfo;
  readonly #models: readonly ModelInfo[];
  /** The open generations, by their ids. */
  readonly #lifecycle = new EngineLifecycle<number>();
  readonly #deliveries = new Map<number, Delivery>();
  /** Requests that came while the process was restarting. */
  readonly #unsent = new Map<number, Submission>();
  readonly #lookUps = new LookUps();
  readonly #questions = new ModelQuestions((question, signal, more) => this.#lookUp(question, signal, more));
  readonly #watch: HangWatch;
  readonly #process: KeptProcess;
  #modelState: ModelState | undefined;
  #nextId = 1;

  constructor(
    options: LlamaEngineOptions,
    open: OpenMessage,
    process: ModelProcess,
    opened: OpenedModel,
    created: number,
  ) {
    this.#options = options;
    this.#open = { ...open, model: opened.path, contextSize: opened.contextSize };
    this.#process = new KeptProcess(process, {
      open: this.#open,
      loadTimeoutMs: options.loadTimeoutMs ?? defaultLoadTimeoutMs,
      lifecycle: this.#lifecycle,
      listeners: () => this.listeners(),
      log: (line, level) => options.log?.(line, level),
      onReady: () => this.#sendUnsent(),
      onLate: (message) => this.#refuseUnsent(message),
    });
    const timeoutMs = options.stepTimeoutMs ?? defaultStepTimeoutMs;
    this.#watch = new HangWatch(timeoutMs, {
      isBusy: () => this.#isBusy(),
      ask: () => this.#process.current.send({ type: "ping" }),
      onHung: () => this.#process.current.end(`made no progress for ${timeoutMs / 1000} seconds and was ended`),
    });
    this.#model = {
      id: options.name ?? fileStem(opened.path),
      created,
      ownedBy: "local",
      contextLength: opened.contextSize,
      sees: false,
      ...(open.adapters && { adapters: listedAdapters(open.adapters) }),
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
    if (question.kind === "embed") checkEndpoint(this.#model, "embeddings");
    if (question.kind === "rerank") checkEndpoint(this.#model, "rerank");
    return this.#questions.ask(question, signal);
  }

  /** Asks the model's process. Rejects with `FailureError`, also when the process ends or `signal` is aborted meanwhile. */
  #lookUp(
    question: (asked: string) => Question,
    signal: AbortSignal,
    { text = "", hear = () => {} }: MoreOfQuestion = {},
  ): Promise<Answer> {
    const { state, message = "The model is restarting." } = this.#lifecycle.health();
    if (state === "closed") return Promise.reject(new FailureError(shuttingDown.failure));
    if (state !== "ready") return Promise.reject(new FailureError(gone(message, this.#process.restartIn)));
    const id = this.#nextId++;
    this.#lifecycle.begin(id);
    const answer = this.#lookUps.wait(id, signal, {
      ask: () => {
        const message = (asked: string): ToModel => ({ type: "look-up", id, question: question(asked) });
        const isWanted = (): boolean => this.#lookUps.has(id);
        const refuse = (failure: GenerationFailure): void => this.#lookUps.answer(id, { about: "failure", failure });
        this.#send(id, text, message, isWanted, refuse);
      },
      leave: () => this.#process.current.send({ type: "cancel", id }),
      hear,
    });
    return answer.finally(() => this.#lifecycle.end(id));
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

  /** Sends a request to the model's process, which does all the work for it. */
  #submit(id: number, request: GenerationRequest, delivery: Delivery): void {
    const refusal = this.#refusal(request.owner);
    if (refusal) return delivery.end(refusal);
    const text = askedText(delivery.observer?.inspection ? { ...request, inspected: true } : request);
    if (text === null) return delivery.end({ kind: "rejected", failure: nestedTooDeeply });
    const submission: Submission = { id, requestId: request.id, owner: request.owner, text };
    this.#deliveries.set(id, delivery);
    this.#lifecycle.begin(id);
    if (this.#lifecycle.state === "ready") this.#sendRequest(submission);
    else this.#unsent.set(id, submission);
  }

  #sendRequest({ id, requestId, owner, text }: Submission): void {
    const message = (asked: string): GenerateMessage => ({
      type: "generate",
      id,
      requestId,
      ...(owner !== undefined && { owner }),
      asked,
    });
    const refuse = (failure: GenerationFailure): void => {
      this.#deliveries.get(id)?.end({ kind: "rejected", failure });
      this.#forget(id);
    };
    this.#send(id, text, message, () => this.#deliveries.has(id), refuse);
  }

  /** Sends what is asked of the model, where it is long in pieces. `refuse`: it cannot be written. */
  #send(
    id: number,
    text: AskedText,
    message: (asked: string) => ToModel,
    isWanted: () => boolean,
    refuse: (failure: GenerationFailure) => void,
  ): void {
    this.#watch.start();
    if (typeof text === "string") return this.#process.current.send(message(text));
    const process = this.#process.current;
    process.sendInPieces(id, text, isWanted, message).catch((error: unknown) => {
      process.send({ type: "cancel", id });
      refuse(error instanceof RangeError ? nestedTooDeeply : unwritable(error));
    });
  }

  /** The process has work to do, or a cancelled request to drop. */
  #isBusy(): boolean {
    if (this.#lookUps.size > 0) return true;
    return this.#deliveries.size > this.#unsent.size || (this.#modelState?.busy ?? 0) > 0;
  }

  get #generates(): boolean {
    return wrongEndpoint(this.#model, "answers") === undefined;
  }

  /** Why no request of this owner is taken now; undefined: they are. */
  #refusal(owner: string | undefined): GenerationEnd | undefined {
    const wrong = wrongEndpoint(this.#model, "answers");
    if (wrong) return { kind: "rejected", failure: wrong };
    const { state, message } = this.#lifecycle.health();
    if (state === "closed") return shuttingDown;
    if (state === "failed")
      return { kind: "rejected", failure: gone(message ?? "The model failed.", this.#process.restartIn) };
    if (state === "restarting" && this.#unsentOf(owner) >= this.#open.queueLimit)
      return { kind: "rejected", failure: gone("The model is restarting.", 2) };
    return undefined;
  }

  #unsentOf(owner: string | undefined): number {
    return [...this.#unsent.values()].filter((message) => message.owner === owner).length;
  }

  #abandon(id: number, delivery: Delivery): void {
    if (!this.#deliveries.has(id)) return;
    delivery.end({ kind: "client-gone" });
    if (!this.#unsent.delete(id)) this.#process.current.send({ type: "cancel", id });
    this.#forget(id);
  }

  #forget(id: number): void {
    this.#deliveries.delete(id);
    this.#lifecycle.end(id);
  }

  /** For the listeners of a process: what a step brought. */
  onStep(message: StepMessage): void {
    this.#modelState = message.state;
    for (const [id, tokens, events, written] of message.results) {
      const delivery = this.#deliveries.get(id);
      if (!delivery) continue;
      if (written) for (const [choice, text] of written) delivery.observer?.inspection?.written(choice, text);
      delivery.push(events, tokens);
      const last = events.at(-1);
      if (last?.type === "end" && last.end.kind === "done") this.#process.succeeded();
      if (delivery.ended) this.#forget(id);
    }
  }

  /** For the listeners of a process: why it reads a prompt again. */
  onCacheMissed(id: number, miss: CacheMiss): void {
    this.#deliveries.get(id)?.observer?.cacheMissed(miss);
  }

  /** For the listeners of a process: its answer to a ping. */
  onPong(turn: number | null): void {
    this.#watch.sign(turn);
  }

  /** For the listeners of a process: its answer to a look-up. */
  onLookedUp(id: number, answer: Answer): void {
    this.#lookUps.answer(id, answer);
  }

  /** For the listeners of a process: the prompts of a request that is looked into. */
  onPrompts(id: number, prompts: readonly InspectedPrompt[]): void {
    const inspection = this.#deliveries.get(id)?.observer?.inspection;
    for (const prompt of prompts) inspection?.prompt(prompt);
  }

  /** For the listeners of a process: it crashed. Its requests end, and it is started again, unless the engine is closing. */
  onGone(how: string): void {
    this.#modelState = undefined;
    this.#watch.stop();
    const closing = this.#lifecycle.state === "closed";
    this.#options.log?.(`The model's process ${how}${closing ? "" : "; it is started again"}.`, "warn");
    const failure = gone(`The model's process ${how} while it generated. It is being restarted; please retry.`, 2);
    for (const [id, delivery] of this.#deliveries) {
      if (this.#unsent.has(id)) continue;
      delivery.end({ kind: "engine-error", failure });
      this.#forget(id);
    }
    this.#lookUps.fail(failure);
    if (!closing) this.#process.restart();
  }

  #sendUnsent(): void {
    const waiting = [...this.#unsent.values()];
    this.#unsent.clear();
    for (const submission of waiting) this.#sendRequest(submission);
  }

  #refuseUnsent(message: string): void {
    for (const id of this.#unsent.keys()) {
      this.#deliveries.get(id)?.end({ kind: "rejected", failure: gone(message, this.#process.restartIn) });
      this.#forget(id);
    }
    this.#unsent.clear();
  }

  listeners(): ModelProcessListeners {
    return {
      onStep: (message) => this.onStep(message),
      onGone: (how) => this.onGone(how),
      onProgress: () => {},
      onPong: (turn) => this.onPong(turn),
      onCacheMissed: (id, miss) => this.onCacheMissed(id, miss),
      onLookedUp: (id, answer) => this.onLookedUp(id, answer),
      onPrompts: (id, prompts) => this.onPrompts(id, prompts),
      log: (line, level) => this.#options.log?.(line, level),
    };
  }

  health(): EngineHealth {
    const state = this.#modelState;
    return {
      ...this.#lifecycle.health(),
      ...(this.#generates && { slots: { busy: state?.busy ?? 0, total: this.#open.slots } }),
      queued: (state?.queued ?? 0) + this.#unsent.size,
      counters: { ...state?.counters, restarts: this.#process.restarts },
    };
  }

  /** The id of the process that holds the model. */
  get processId(): number | undefined {
    return this.#process.current.pid;
  }

  close(graceMs: number): Promise<void> {
    this.#process.stopWaiting();
    return this.#lifecycle.close(graceMs, {
      stop: (id) => {
        this.#lookUps.answer(id, { about: "failure", failure: shuttingDown.failure });
        this.#deliveries.get(id)?.end(shuttingDown);
        this.#forget(id);
      },
      release: () => {
        this.#watch.stop();
        this.#lookUps.fail(shuttingDown.failure);
        return this.#open.keepCache ? this.#process.current.leave() : this.#process.current.stop();
      },
    });
  }
}

function gone(message: string, retryAfterSeconds: number): GenerationFailure {
  return { kind: "unavailable", message, status: 503, param: null, code: null, retryAfterSeconds };
}

/** A request on its way to the model's process. */
interface Submission {
  readonly id: number;
  /** The server's. */
  readonly requestId: string;
  readonly owner: string | undefined;
  readonly text: AskedText;
}

function unwritable(cause: unknown): GenerationFailure {
  return { kind: "internal", status: 500, message: "The request could not be sent to the model.", cause };
}

/** The name of a file without its folder and `.gguf`. */
export function fileStem(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).replace(/\.gguf$/i, "");
}
