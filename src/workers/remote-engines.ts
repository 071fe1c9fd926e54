import type { Engine, EngineAnswer, EngineHealth, EngineQuestion, ModelInfo, QuestionKind } from "../core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { EngineLifecycle, shuttingDown } from "../engines/lifecycle/engine-lifecycle.ts";
import { engineTopics, maxAhead } from "./engine-messages.ts";
import type {
  EngineState,
  EventsMessage,
  LookUpAnswer,
  LookUpMessage,
  MissedMessage,
  OpenEngineMessage,
  RemoteGenerateMessage,
  StateMessage,
  TakenMessage,
} from "./engine-messages.ts";
import type { Peer } from "./peer.ts";

type Batch = readonly GenerationEvent[];

/** The engines of the primary process, as a worker uses them. */
export class RemoteEngines {
  readonly #connection: Connection;
  readonly #engines = new Map<number, RemoteEngine>();
  /** Engines that are being opened, with state changes that arrived before the answer. */
  readonly #opening = new Map<number, EngineState | undefined>();

  constructor(peer: Peer) {
    this.#connection = new Connection(peer);
    peer.onNotification(engineTopics.state, (message) => {
      const [engine, state] = message as StateMessage;
      const known = this.#engines.get(engine);
      if (known) known.update(state);
      else if (this.#opening.has(engine)) this.#opening.set(engine, state);
    });
    void peer.closed.then(() => {
      for (const engine of this.#engines.values()) engine.disconnected();
    });
  }

  /** Resolves when the primary process has opened the engine of this name. Rejects with its message if there is none. */
  async open(name: string): Promise<RemoteEngine> {
    const number = this.#connection.nextId();
    const message: OpenEngineMessage = { engine: number, name };
    this.#opening.set(number, undefined);
    try {
      const state = (await this.#connection.peer.request(engineTopics.open, message)) as EngineState;
      const newest = this.#opening.get(number) ?? state;
      const engine = new RemoteEngine(this.#connection, number, newest, () => this.#engines.delete(number));
      this.#engines.set(number, engine);
      return engine;
    } finally {
      this.#opening.delete(number);
    }
  }
}

/** The generations and look-ups of a worker that are in progress in the primary process. */
class Connection {
  readonly peer: Peer;
  readonly generations = new Map<number, RemoteGeneration>();
  #lastId = 0;

  constructor(peer: Peer) {
    this.peer = peer;
    peer.onNotification(engineTopics.events, (message) => {
      for (const [id, batch] of JSON.parse(message as string) as EventsMessage)
        this.generations.get(id)?.receive(batch);
    });
    peer.onNotification(engineTopics.missed, (message) => {
      const [id, miss] = message as MissedMessage;
      this.generations.get(id)?.observer?.cacheMissed(miss);
    });
  }

  nextId(): number {
    return ++this.#lastId;
  }

  /** Rejects when `signal` is aborted, with its reason. If the connection ends, the answer is a failure. */
  async lookUp<K extends QuestionKind>(
    engine: number,
    kind: K,
    request: string,
    signal: AbortSignal,
  ): Promise<LookUpAnswer<K>> {
    signal.throwIfAborted();
    const message: LookUpMessage = { engine, id: this.nextId(), kind, request };
    const answer = this.peer.request(engineTopics.lookUp, message).catch(() => ({ failure: primaryGone }));
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        this.peer.notify(engineTopics.lookUpLeft, message.id);
        reject(signal.reason);
      };
      signal.addEventListener("abort", cancel, { once: true });
      void answer.then((value) => {
        signal.removeEventListener("abort", cancel);
        resolve(value as LookUpAnswer<K>);
      });
    });
  }
}

/** An engine of the primary process. */
export class RemoteEngine implements Engine {
  readonly #connection: Connection;
  readonly #number: number;
  readonly #onClose: () => void;
  readonly #lifecycle = new EngineLifecycle<RemoteGeneration>();
  #state: EngineState;
  #isDisconnected = false;

  constructor(connection: Connection, number: number, state: EngineState, onClose: () => void) {
    this.#connection = connection;
    this.#number = number;
    this.#state = state;
    this.#onClose = onClose;
  }

  /** Called when the primary process reports another state. */
  update(state: EngineState): void {
    this.#state = state;
  }

  /** Called when the primary process has ended. */
  disconnected(): void {
    this.#state = { ...this.#state, health: { state: "failed", message: primaryGone.message } };
    this.#isDisconnected = true;
    for (const generation of this.#lifecycle.open) generation.end(primaryLost);
  }

  models(): readonly ModelInfo[] {
    return this.#state.models;
  }

  health(): EngineHealth {
    return this.#lifecycle.state === "closed" ? { state: "closed" } : this.#state.health;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): RemoteGeneration {
    const begin = (generation: RemoteGeneration): number | GenerationEnd => {
      this.#lifecycle.begin(generation);
      if (this.#lifecycle.state === "closed") return shuttingDown;
      if (this.#isDisconnected) return primaryLost;
      const text = jsonOf(portable(request));
      if (text === undefined) return tooDeep;
      const id = this.#connection.nextId();
      this.#connection.generations.set(id, generation);
      const message: RemoteGenerateMessage = { engine: this.#number, id, request: text };
      this.#connection.peer.notify(engineTopics.generate, message);
      return id;
    };
    return new RemoteGeneration(this.#connection, begin, (generation) => this.#lifecycle.end(generation), observer);
  }

  questions(): readonly QuestionKind[] {
    return this.#state.questions;
  }

  async ask<K extends QuestionKind>(question: EngineQuestion<K>, signal: AbortSignal): Promise<EngineAnswer<K>> {
    if (this.#lifecycle.state === "closed") throw new FailureError(shuttingDown.failure);
    const request = jsonOf(portableRequest(question as EngineQuestion));
    if (request === undefined) throw new FailureError(tooDeep.failure);
    const answer = await this.#connection.lookUp(this.#number, question.kind, request, signal);
    if ("failure" in answer) throw new FailureError(answer.failure);
    return answer.value;
  }

  close(graceMs: number): Promise<void> {
    return this.#lifecycle.close(graceMs, {
      stop: (generation) => generation.end(shuttingDown),
      release: async () => {
        this.#onClose();
        this.#connection.peer.notify(engineTopics.close, this.#number);
      },
    });
  }
}

/** Removes the client's own JSON, which only upstreams read: workers send requests to upstreams themselves. */
function portable(request: GenerationRequest): GenerationRequest {
  return { ...request, passthrough: undefined };
}

function portableRequest(question: EngineQuestion): EngineQuestion["request"] {
  switch (question.kind) {
    case "count-tokens":
    case "apply-template":
      return portable(question.request);
    case "tokenize": {
      const { input } = question.request;
      const portableInput = input.kind === "chat" ? { ...input, request: portable(input.request) } : input;
      return { ...question.request, body: {}, input: portableInput };
    }
    default:
      return question.request;
  }
}

/** undefined: the value is nested too deeply for JSON. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

export const primaryGone: GenerationFailure = {
  kind: "unavailable",
  message: "The process that holds the server's models has ended.",
  status: 503,
  param: null,
  code: null,
  retryAfterSeconds: 5,
};

const primaryLost: GenerationEnd = { kind: "engine-error", failure: primaryGone };

const tooDeep: Extract<GenerationEnd, { readonly failure: GenerationFailure }> = {
  kind: "rejected",
  failure: {
    kind: "invalid-request",
    message: "The request is nested too deeply.",
    status: 400,
    param: null,
    code: "invalid_value",
  },
};

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** A generation in the primary process. The events since the last step are one batch. */
export class RemoteGeneration implements AsyncIterableIterator<Batch, undefined> {
  readonly observer: GenerationObserver | undefined;
  readonly #connection: Connection;
  readonly #begin: (generation: RemoteGeneration) => number | GenerationEnd;
  readonly #onEnd: (generation: RemoteGeneration) => void;
  #state: "new" | "running" | "ended" | "left" = "new";
  #id: number | undefined;
  /** Events that the reader has not taken, and the number of batches that they came in. */
  #buffer: Batch = [];
  #bufferedBatches = 0;
  /** Batches that the reader has taken and the primary process has not been credited for. */
  #uncredited = 0;
  #waiting: ((step: IteratorResult<Batch, undefined>) => void) | undefined;

  /** `begin` starts the generation and returns its id, or how it ended. `onEnd` is called once, when nothing more comes or is read. */
  constructor(
    connection: Connection,
    begin: (generation: RemoteGeneration) => number | GenerationEnd,
    onEnd: (generation: RemoteGeneration) => void,
    observer?: GenerationObserver,
  ) {
    this.#connection = connection;
    this.#begin = begin;
    this.#onEnd = onEnd;
    this.observer = observer;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Must not be called while another call waits. */
  next(): Promise<IteratorResult<Batch, undefined>> {
    if (this.#state === "new") {
      this.#state = "running";
      const begun = this.#begin(this);
      if (typeof begun === "number") this.#id = begun;
      else this.end(begun);
    }
    if (this.#buffer.length > 0) return Promise.resolve(this.#take());
    if (this.#state !== "running") return Promise.resolve(done);
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  /** Cancels the generation. */
  return(): Promise<IteratorResult<Batch, undefined>> {
    const isRunning = this.#state === "running";
    this.#state = "left";
    this.#buffer = [];
    if (isRunning) {
      this.#notify(engineTopics.leave, this.#id);
      this.#finish();
    }
    this.#waiting?.(done);
    this.#waiting = undefined;
    return Promise.resolve(done);
  }

  /** Called with a batch of the engine; null: the generation has ended without a further event. */
  receive(batch: Batch | null): void {
    if (this.#state !== "running") return;
    if (batch !== null) {
      this.#buffer = this.#buffer.length === 0 ? batch : [...this.#buffer, ...batch];
      this.#bufferedBatches++;
    }
    if (batch === null || batch.at(-1)?.type === "end") {
      this.#state = "ended";
      this.#finish();
    }
    if (!this.#waiting) return;
    this.#waiting(this.#buffer.length > 0 ? this.#take() : done);
    this.#waiting = undefined;
  }

  /** Ends the generation from this side: the reader receives this end, and the primary process cancels the work. */
  end(end: GenerationEnd): void {
    if (this.#state === "running") this.#notify(engineTopics.leave, this.#id);
    this.receive([{ type: "end", end }]);
  }

  #finish(): void {
    if (this.#id !== undefined) this.#connection.generations.delete(this.#id);
    this.#onEnd(this);
  }

  #take(): IteratorResult<Batch, undefined> {
    const value = this.#buffer;
    this.#buffer = [];
    this.#uncredited += this.#bufferedBatches;
    this.#bufferedBatches = 0;
    // At half of the credit, so that the engine need not wait for it.
    if (this.#uncredited >= maxAhead / 2 && this.#state === "running" && this.#id !== undefined) {
      this.#notify(engineTopics.taken, [this.#id, this.#uncredited] satisfies TakenMessage);
      this.#uncredited = 0;
    }
    return { done: false, value };
  }

  #notify(topic: string, body: unknown): void {
    if (this.#id !== undefined) this.#connection.peer.notify(topic, body);
  }
}
