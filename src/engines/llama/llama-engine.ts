import { cancellable } from "../../generation/cancellable.ts";
import type { Engine, EngineHealth, ModelInfo } from "../../generation/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../../generation/event.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { Delivery } from "./delivery.ts";
import { ModelProcess } from "./model-process.ts";
import type { LlamaEngineOptions } from "./options.ts";
import type { AskedOfModel, GenerateMessage, ModelState, OpenedModel, OpenMessage, StepMessage } from "./protocol.ts";
import { RestartPause } from "./restart-pause.ts";

/** A local model, in a process of its own that comes back when it crashes. Opened by `openLlamaEngine`. */
export class LlamaEngine implements Engine {
  readonly #options: LlamaEngineOptions;
  readonly #open: OpenMessage;
  readonly #models: readonly ModelInfo[];
  /** The open generations, by their ids. */
  readonly #lifecycle = new EngineLifecycle<number>();
  readonly #deliveries = new Map<number, Delivery>();
  /** Requests that came while the process was restarting. */
  readonly #unsent = new Map<number, GenerateMessage>();
  readonly #pause = new RestartPause();
  #process: ModelProcess;
  #modelState: ModelState | undefined;
  #restarts = 0;
  #nextId = 1;
  #restartTimer: NodeJS.Timeout | undefined;

  constructor(
    options: LlamaEngineOptions,
    open: OpenMessage,
    process: ModelProcess,
    opened: OpenedModel,
    created: number,
  ) {
    this.#options = options;
    this.#open = { ...open, model: opened.path, contextSize: opened.contextSize };
    this.#process = process;
    const model: ModelInfo = {
      id: options.name ?? fileStem(opened.path),
      created,
      ownedBy: "local",
      contextLength: opened.contextSize,
      endpoints: opened.answersChats ? ["chat", "completions"] : ["completions"],
    };
    this.#models = [model];
  }

  models(): readonly ModelInfo[] {
    return this.#models;
  }

  generate(request: GenerationRequest): AsyncIterable<readonly GenerationEvent[]> {
    return cancellable((signal) => this.#run(request, signal));
  }

  async *#run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    const id = this.#nextId++;
    const delivery = new Delivery((tokens) => this.#process.send({ type: "taken", id, tokens }));
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

  /** Sends a request on its way; all that is to be done for it is done in the model's process. */
  #submit(id: number, request: GenerationRequest, delivery: Delivery): void {
    const refusal = this.#refusal();
    if (refusal) return delivery.end(refusal);
    const asked = jsonOf(request);
    if (asked === null) return delivery.end(nestedTooDeeply);
    const message: GenerateMessage = { type: "generate", id, requestId: request.id, asked };
    this.#deliveries.set(id, delivery);
    this.#lifecycle.begin(id);
    if (this.#lifecycle.state === "ready") this.#process.send(message);
    else this.#unsent.set(id, message);
  }

  /** Why no request is taken now; undefined: they are. */
  #refusal(): GenerationEnd | undefined {
    const { state, message } = this.#lifecycle.health();
    if (state === "closed") return shuttingDown;
    if (state === "failed") return { kind: "rejected", failure: gone(message ?? "The model failed.") };
    if (state === "restarting" && this.#unsent.size >= this.#open.queueLimit)
      return { kind: "rejected", failure: { ...gone("The model is restarting."), retryAfterSeconds: 2 } };
    return undefined;
  }

  #abandon(id: number, delivery: Delivery): void {
    if (!this.#deliveries.has(id)) return;
    delivery.end({ kind: "client-gone" });
    if (!this.#unsent.delete(id)) this.#process.send({ type: "cancel", id });
    this.#forget(id);
  }

  #forget(id: number): void {
    this.#deliveries.delete(id);
    this.#lifecycle.end(id);
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
    if (this.#lifecycle.state === "closed") return;
    this.#modelState = undefined;
    this.#options.log?.(`The model's process ${how}; it is started again.`, "warn");
    const failure = gone(`The model's process ${how} while it generated. It is being restarted; please retry.`);
    for (const [id, delivery] of this.#deliveries) {
      if (this.#unsent.has(id)) continue;
      delivery.end({ kind: "engine-error", failure: { ...failure, retryAfterSeconds: 2 } });
      this.#forget(id);
    }
    this.#restart();
  }

  #restart(): void {
    const pause = this.#pause.next(performance.now());
    if (pause === null) return this.#giveUp("The model's process keeps failing.");
    this.#lifecycle.become("restarting", "The model's process crashed and is being restarted.");
    this.#restarts++;
    this.#restartTimer = setTimeout(() => void this.#startAgain(), pause);
  }

  async #startAgain(): Promise<void> {
    this.#process = new ModelProcess(this.#open, this.listeners());
    try {
      await this.#process.opened;
    } catch (error) {
      if (this.#lifecycle.state === "closed") return;
      this.#options.log?.(error instanceof Error ? error.message : String(error), "warn");
      return this.#restart();
    }
    this.#lifecycle.become("ready");
    for (const message of this.#unsent.values()) this.#process.send(message);
    this.#unsent.clear();
  }

  #giveUp(message: string): void {
    this.#lifecycle.become("failed", message);
    this.#unsent.clear();
    for (const [id, delivery] of this.#deliveries) {
      delivery.end({ kind: "engine-error", failure: gone(message) });
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
      ...this.#lifecycle.health(),
      slots: { busy: state?.busy ?? 0, total: this.#open.slots },
      queued: (state?.queued ?? 0) + this.#unsent.size,
      counters: { ...state?.counters, restarts: this.#restarts },
    };
  }

  /** The id of the process that holds the model. */
  get processId(): number | undefined {
    return this.#process.pid;
  }

  close(graceMs: number): Promise<void> {
    clearTimeout(this.#restartTimer);
    return this.#lifecycle.close(graceMs, {
      stop: (id) => {
        this.#deliveries.get(id)?.end(shuttingDown);
        this.#forget(id);
      },
      release: () => this.#process.stop(),
    });
  }
}

function gone(message: string): GenerationFailure {
  return { message, status: 503, kind: "unavailable", param: null, code: null };
}

/** What the model is told of a request, as JSON; null: it is nested too deeply for that. */
function jsonOf(request: GenerationRequest): string | null {
  const { prompt, n, sampling, limits, logprobs, tools, toolChoice, parallelToolCalls, output, reasoning } = request;
  const asked: { readonly [Name in keyof AskedOfModel]: AskedOfModel[Name] | undefined } = {
    prompt,
    n,
    sampling,
    limits,
    logprobs,
    tools,
    toolChoice,
    parallelToolCalls,
    output,
    reasoning,
  };
  try {
    return JSON.stringify(asked);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const nestedTooDeeply: GenerationEnd = {
  kind: "rejected",
  failure: {
    kind: "invalid-request",
    message: "The request is nested too deeply.",
    status: 400,
    param: null,
    code: "invalid_value",
  },
};

function fileStem(path: string): string {
  return path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1).replace(/\.gguf$/i, "");
}
