import { cancellable } from "../../generation/cancellable.ts";
import type { Engine, EngineHealth, ModelInfo } from "../../generation/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../../generation/event.ts";
import { FailureError } from "../../generation/failure.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { findFormat } from "../../formats/find-format.ts";
import type { Format } from "../../formats/format.ts";
import { plainText } from "../../formats/plain-text.ts";
import { ChatTemplate } from "../../templates/chat-template.ts";
import { templateMetadata } from "../../templates/template-metadata.ts";
import { AnswerCheck } from "./answer-check.ts";
import { Delivery } from "./delivery.ts";
import { generateMessage, type MessageSurroundings } from "./generate-message.ts";
import { ModelProcess } from "./model-process.ts";
import type { LlamaEngineOptions } from "./options.ts";
import type { GenerateMessage, ModelFacts, ModelState, OpenMessage, StepMessage } from "./protocol.ts";
import { RestartPause } from "./restart-pause.ts";
import { formatInMetadata } from "./template-format.ts";

/** A local model, in a process of its own that comes back when it crashes. Opened by `openLlamaEngine`. */
export class LlamaEngine implements Engine {
  readonly #options: LlamaEngineOptions;
  readonly #open: OpenMessage;
  readonly #surroundings: Omit<MessageSurroundings, "now">;
  readonly #model: ModelInfo;
  readonly #deliveries = new Map<number, Delivery>();
  /** Requests that came while the process was restarting. */
  readonly #unsent = new Map<number, GenerateMessage>();
  readonly #pause = new RestartPause();
  #process: ModelProcess;
  #state: EngineHealth["state"] = "ready";
  #stateMessage: string | undefined;
  #modelState: ModelState | undefined;
  #restarts = 0;
  #nextId = 1;
  #restartTimer: NodeJS.Timeout | undefined;
  /** Called when the last request has ended, while closing. */
  #onIdle: (() => void) | undefined;

  constructor(
    options: LlamaEngineOptions,
    open: OpenMessage,
    process: ModelProcess,
    facts: ModelFacts,
    created: number,
  ) {
    this.#options = options;
    this.#open = { ...open, model: facts.path, contextSize: facts.contextSize };
    this.#process = process;
    const source = options.chatTemplate ?? facts.chatTemplate;
    const template =
      source === null
        ? null
        : new ChatTemplate({
            source,
            specialTokens: facts.specialTokens,
            markupTokens: facts.markupTokens,
            ...(facts.bosToken !== null && { bosToken: facts.bosToken }),
            ...(facts.eosToken !== null && { eosToken: facts.eosToken }),
          });
    const metadata = templateMetadata(source ?? "");
    const format = options.toolFormat ?? formatInMetadata(metadata) ?? formatOf(template);
    const { stopStrings = [] } = metadata;
    this.#surroundings = { facts, template, format, stopStrings, defaults: options.defaults };
    this.#model = {
      id: options.name ?? fileStem(facts.path),
      created,
      ownedBy: "local",
      contextLength: facts.contextSize,
      endpoints: template ? ["chat", "completions"] : ["completions"],
    };
  }

  models(): readonly ModelInfo[] {
    return [this.#model];
  }

  generate(request: GenerationRequest): AsyncIterable<readonly GenerationEvent[]> {
    return cancellable((signal) => this.#run(request, signal));
  }

  async *#run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    const id = this.#nextId++;
    const delivery = new Delivery((tokens) => this.#process.send({ type: "taken", id, tokens }));
    const abandon = (): void => this.#abandon(id, delivery);
    let check: AnswerCheck | undefined;
    if (signal.aborted) delivery.abandon();
    else check = this.#submit(id, request, delivery);
    signal.addEventListener("abort", abandon, { once: true });
    try {
      for (;;) {
        const batch = await delivery.next();
        if (!batch) return;
        check?.read(batch);
        yield batch;
      }
    } finally {
      signal.removeEventListener("abort", abandon);
      this.#abandon(id, delivery);
    }
  }

  /** Sends a request on its way. Gives what its answer is checked with, where the grammar does not hold all that was asked. */
  #submit(id: number, request: GenerationRequest, delivery: Delivery): AnswerCheck | undefined {
    const refusal = this.#refusal();
    if (refusal) {
      delivery.fail(refusal.kind, refusal.failure);
      return undefined;
    }
    try {
      const { message, warnings, check } = generateMessage(id, request, { ...this.#surroundings, now: new Date() });
      for (const warning of warnings) this.#options.log?.(`${request.id}: ${warning}`, "warn");
      this.#deliveries.set(id, delivery);
      if (this.#state === "ready") this.#process.send(message);
      else this.#unsent.set(id, message);
      return check && new AnswerCheck(check, (line, level) => this.#options.log?.(`${request.id}: ${line}`, level));
    } catch (error) {
      delivery.fail("rejected", failureOf(error));
      return undefined;
    }
  }

  /** Why no request is taken now; undefined: they are. */
  #refusal(): { kind: "rejected" | "shutdown"; failure: GenerationFailure } | undefined {
    if (this.#state === "closed") return { kind: "shutdown", failure: gone("The server is shutting down.") };
    if (this.#state === "failed") return { kind: "rejected", failure: gone(this.#stateMessage ?? "The model failed.") };
    if (this.#state === "restarting" && this.#unsent.size >= this.#open.queueLimit)
      return { kind: "rejected", failure: { ...gone("The model is restarting."), retryAfterSeconds: 2 } };
    return undefined;
  }

  #abandon(id: number, delivery: Delivery): void {
    if (!this.#deliveries.has(id)) return;
    delivery.abandon();
    if (!this.#unsent.delete(id)) this.#process.send({ type: "cancel", id });
    this.#forget(id);
  }

  #forget(id: number): void {
    this.#deliveries.delete(id);
    if (this.#deliveries.size === 0) this.#onIdle?.();
  }

  /** For the listeners of a process: what a step brought. */
  onStep(message: StepMessage): void {
    this.#modelState = message.state;
    for (const [id, tokens, events] of message.results) {
      const delivery = this.#deliveries.get(id);
      if (!delivery) continue;
      delivery.push(events, tokens);
      if (delivery.ended) this.#forget(id);
    }
  }

  /** For the listeners of a process: it crashed. Its requests end, and it is started again. */
  onGone(how: string): void {
    if (this.#state === "closed") return;
    this.#modelState = undefined;
    this.#options.log?.(`The model's process ${how}; it is started again.`, "warn");
    const failure = gone(`The model's process ${how} while it generated. It is being restarted; please retry.`);
    for (const [id, delivery] of this.#deliveries) {
      if (this.#unsent.has(id)) continue;
      delivery.fail("engine-error", { ...failure, retryAfterSeconds: 2 });
      this.#forget(id);
    }
    this.#restart();
  }

  #restart(): void {
    const pause = this.#pause.next(performance.now());
    if (pause === null) return this.#giveUp("The model's process keeps failing.");
    this.#state = "restarting";
    this.#stateMessage = "The model's process crashed and is being restarted.";
    this.#restarts++;
    this.#restartTimer = setTimeout(() => void this.#startAgain(), pause);
  }

  async #startAgain(): Promise<void> {
    this.#process = new ModelProcess(this.#open, this.listeners());
    try {
      await this.#process.opened;
    } catch (error) {
      if (this.#isClosed()) return;
      this.#options.log?.(error instanceof Error ? error.message : String(error), "warn");
      return this.#restart();
    }
    if (this.#isClosed()) return;
    this.#state = "ready";
    this.#stateMessage = undefined;
    for (const message of this.#unsent.values()) this.#process.send(message);
    this.#unsent.clear();
  }

  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #giveUp(message: string): void {
    this.#state = "failed";
    this.#stateMessage = message;
    this.#unsent.clear();
    for (const [id, delivery] of this.#deliveries) {
      delivery.fail("engine-error", gone(message));
      this.#forget(id);
    }
  }

  listeners(): ConstructorParameters<typeof ModelProcess>[1] {
    return {
      onStep: (message) => this.onStep(message),
      onGone: (how) => this.onGone(how),
      onProgress: () => {},
      log: (line, level) => this.#options.log?.(line, level),
    };
  }

  health(): EngineHealth {
    const state = this.#modelState;
    return {
      state: this.#state,
      slots: { busy: state?.busy ?? 0, total: this.#open.slots },
      queued: (state?.queued ?? 0) + this.#unsent.size,
      counters: { ...state?.counters, restarts: this.#restarts },
      ...(this.#stateMessage !== undefined && { message: this.#stateMessage }),
    };
  }

  /** The id of the process that holds the model. */
  get processId(): number | undefined {
    return this.#process.pid;
  }

  async close(graceMs: number): Promise<void> {
    if (this.#isClosed()) return;
    const wasReady = this.#state === "ready";
    this.#state = "closed";
    clearTimeout(this.#restartTimer);
    if (wasReady && this.#deliveries.size > 0 && graceMs > 0) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([
        new Promise<void>((resolve) => (this.#onIdle = resolve)),
        new Promise<void>((resolve) => (timer = setTimeout(resolve, graceMs))),
      ]);
      clearTimeout(timer);
    }
    for (const [id, delivery] of this.#deliveries) {
      delivery.fail("shutdown", gone("The server is shutting down."));
      this.#forget(id);
    }
    await this.#process.stop();
  }
}

function gone(message: string): GenerationFailure {
  return { message, status: 503, kind: "unavailable", param: null, code: null };
}

function failureOf(error: unknown): GenerationFailure {
  if (error instanceof FailureError) return error.failure;
  return {
    message: "The request could not be prepared for the model.",
    status: 500,
    kind: "internal",
    param: null,
    code: null,
    cause: error,
  };
}

function fileStem(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).replace(/\.gguf$/i, "");
}

/** How the model writes calls and thoughts: by its template's markers, else as the template itself writes them. */
function formatOf(template: ChatTemplate | null): Format {
  if (template === null) return plainText;
  const now = new Date();
  return findFormat(template.source, (messages, tools, addGenerationPrompt) => {
    return template.render({ messages, tools, options: { addGenerationPrompt }, now }).text;
  });
}
