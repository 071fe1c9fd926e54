import type { Engine, EngineHealth, ModelInfo, TokenizeRequest } from "../core/engine.ts";
import type { GenerationEnd, GenerationEvent, GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { EngineLifecycle, shuttingDown } from "../engines/lifecycle/engine-lifecycle.ts";
import { engineTopics, mostAhead } from "./engine-messages.ts";
import type {
  Ability,
  EngineState,
  EventsMessage,
  GenerateMessage,
  LookUpAnswer,
  LookUpMessage,
  MissedMessage,
  OpenMessage,
  StateMessage,
  TakenMessage,
} from "./engine-messages.ts";
import type { Peer } from "./peer.ts";

/** The engines of the primary process, as a worker uses them. */
export class RemoteEngines {
  readonly #peer: Peer;
  readonly #engines = new Map<number, RemoteEngine>();
  /** Engines that are being opened, with news of them that came before the answer was heard. */
  readonly #opening = new Map<number, EngineState | undefined>();
  readonly #generations = new Map<number, RemoteGeneration>();
  #lastId = 0;

  constructor(peer: Peer) {
    this.#peer = peer;
    peer.hear(engineTopics.events, (message) => {
      for (const [id, batch] of JSON.parse(message as string) as EventsMessage)
        this.#generations.get(id)?.receive(batch);
    });
    peer.hear(engineTopics.missed, (message) => {
      const [id, miss] = message as MissedMessage;
      this.#generations.get(id)?.observer?.cacheMissed(miss);
    });
    peer.hear(engineTopics.state, (message) => {
      const [engine, state] = message as StateMessage;
      const known = this.#engines.get(engine);
      if (known) known.become(state);
      else if (this.#opening.has(engine)) this.#opening.set(engine, state);
    });
    void peer.closed.then(() => {
      for (const engine of this.#engines.values()) engine.lost();
    });
  }

  /** Resolves when the primary process has opened the engine of this name. Rejects with its message where it has none. */
  async open(name: string): Promise<RemoteEngine> {
    const number = ++this.#lastId;
    const state = await this.#askToOpen({ engine: number, name });
    const engine = new RemoteEngine(
      {
        begin: (request, generation) => {
          const id = ++this.#lastId;
          this.#generations.set(id, generation);
          this.#peer.tell(engineTopics.generate, { engine: number, id, request } satisfies GenerateMessage);
          return id;
        },
        taken: (id, batches) => this.#peer.tell(engineTopics.taken, [id, batches] satisfies TakenMessage),
        leave: (id) => this.#peer.tell(engineTopics.leave, id),
        forget: (id) => this.#generations.delete(id),
        lookUp: (about, request, signal) => this.#lookUp(number, about, request, signal),
        close: () => {
          this.#engines.delete(number);
          this.#peer.tell(engineTopics.close, number);
        },
      },
      state,
    );
    this.#engines.set(number, engine);
    return engine;
  }

  async #askToOpen(message: OpenMessage): Promise<EngineState> {
    this.#opening.set(message.engine, undefined);
    try {
      const state = (await this.#peer.ask(engineTopics.open, message)) as EngineState;
      return this.#opening.get(message.engine) ?? state;
    } finally {
      this.#opening.delete(message.engine);
    }
  }

  async #lookUp<A extends Ability>(
    engine: number,
    about: A,
    request: string,
    signal: AbortSignal,
  ): Promise<LookUpAnswer<A>> {
    signal.throwIfAborted();
    const id = ++this.#lastId;
    const message: LookUpMessage = { engine, id, about, request };
    const answer = this.#peer.ask(engineTopics.lookUp, message).catch(() => ({ failure: primaryGone }));
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#peer.tell(engineTopics.lookUpLeft, id);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      void answer.then((value) => {
        signal.removeEventListener("abort", leave);
        resolve(value as LookUpAnswer<A>);
      });
    });
  }
}

type ValueOf<A extends Ability> = Extract<LookUpAnswer<A>, { readonly value: unknown }>["value"];

/** How an engine's own process is told and asked. */
export interface Line {
  /** Begins a generation; what comes of it goes to `receive` of the one that is given. Returns the number by which it is known. */
  begin(request: string, generation: RemoteGeneration): number;
  taken(id: number, batches: number): void;
  leave(id: number): void;
  forget(id: number): void;
  /** Rejects when `signal` is aborted, with its reason, and when the connection ends. */
  lookUp<A extends Ability>(about: A, request: string, signal: AbortSignal): Promise<LookUpAnswer<A>>;
  /** The engine is needed no more. */
  close(): void;
}

/** An engine that lives in the primary process. */
export class RemoteEngine implements Engine {
  readonly #line: Line;
  readonly #lifecycle = new EngineLifecycle<RemoteGeneration>();
  #state: EngineState;
  #isLost = false;

  constructor(line: Line, state: EngineState) {
    this.#line = line;
    this.#state = state;
  }

  /** The news of the primary process. */
  become(state: EngineState): void {
    this.#state = state;
  }

  /** The primary process is gone. */
  lost(): void {
    this.#state = { ...this.#state, health: { state: "failed", message: primaryGone.message } };
    this.#isLost = true;
    for (const generation of this.#lifecycle.open) generation.end(lost);
  }

  models(): readonly ModelInfo[] {
    return this.#state.models;
  }

  health(): EngineHealth {
    return this.#lifecycle.state === "closed" ? { state: "closed" } : this.#state.health;
  }

  generate(request: GenerationRequest, observer?: GenerationObserver): RemoteGeneration {
    let id: number | undefined;
    const remote: Remote = {
      begin: () => {
        this.#lifecycle.begin(generation);
        if (this.#lifecycle.state === "closed") return generation.end(shuttingDown);
        if (this.#isLost) return generation.end(lost);
        const asked = jsonOf(portable(request));
        if (asked === undefined) return generation.end(tooDeep);
        id = this.#line.begin(asked, generation);
      },
      taken: (batches) => {
        if (id !== undefined) this.#line.taken(id, batches);
      },
      leave: () => {
        if (id !== undefined) this.#line.leave(id);
      },
      over: () => {
        if (id !== undefined) this.#line.forget(id);
        this.#lifecycle.end(generation);
      },
    };
    const generation = new RemoteGeneration(remote, observer);
    return generation;
  }

  get countTokens(): Engine["countTokens"] {
    if (!this.#able("countTokens")) return undefined;
    return (request, signal) => this.#lookUp("countTokens", portable(request), signal);
  }

  get tokenize(): Engine["tokenize"] {
    if (!this.#able("tokenize")) return undefined;
    return (request, signal) => this.#lookUp("tokenize", portableTokenize(request), signal);
  }

  get detokenize(): Engine["detokenize"] {
    if (!this.#able("detokenize")) return undefined;
    return (request, signal) => this.#lookUp("detokenize", request, signal);
  }

  get applyTemplate(): Engine["applyTemplate"] {
    if (!this.#able("applyTemplate")) return undefined;
    return (request, signal) => this.#lookUp("applyTemplate", portable(request), signal);
  }

  get slots(): Engine["slots"] {
    if (!this.#able("slots")) return undefined;
    return (signal) => this.#lookUp("slots", null, signal);
  }

  get embed(): Engine["embed"] {
    if (!this.#able("embed")) return undefined;
    return (request, signal) => this.#lookUp("embed", request, signal);
  }

  get rerank(): Engine["rerank"] {
    if (!this.#able("rerank")) return undefined;
    return (request, signal) => this.#lookUp("rerank", request, signal);
  }

  close(graceMs: number): Promise<void> {
    return this.#lifecycle.close(graceMs, {
      stop: (generation) => generation.end(shuttingDown),
      release: async () => this.#line.close(),
    });
  }

  #able(ability: Ability): boolean {
    return this.#state.abilities.includes(ability);
  }

  async #lookUp<A extends Ability>(about: A, request: unknown, signal: AbortSignal): Promise<ValueOf<A>> {
    if (this.#lifecycle.state === "closed") throw new FailureError(shuttingDown.failure);
    const asked = jsonOf(request);
    if (asked === undefined) throw new FailureError(tooDeep.failure);
    const answer = await this.#line.lookUp(about, asked, signal);
    if ("failure" in answer) throw new FailureError(answer.failure);
    return answer.value;
  }
}

/** Only an upstream reads a client's own JSON, and none is asked from the primary process. */
function portable(request: GenerationRequest): GenerationRequest {
  return { ...request, passthrough: undefined };
}

function portableTokenize(request: TokenizeRequest): TokenizeRequest {
  const { input } = request;
  return {
    ...request,
    body: {},
    input: input.kind === "chat" ? { kind: "chat", request: portable(input.request) } : input,
  };
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

const lost: GenerationEnd = { kind: "engine-error", failure: primaryGone };

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

type Batch = readonly GenerationEvent[];

const done: IteratorReturnResult<undefined> = { done: true, value: undefined };

/** What a generation has its engine's process do. */
export interface Remote {
  begin(): void;
  taken(batches: number): void;
  leave(): void;
  /** Once: nothing more comes, or nobody waits for it. */
  over(): void;
}

/** A generation in another process, as its reader sees it: what came since the reader last asked is one batch. */
export class RemoteGeneration implements AsyncIterableIterator<Batch, undefined> {
  /** Hears what no event tells. */
  readonly observer: GenerationObserver | undefined;
  readonly #remote: Remote;
  #state: "new" | "running" | "ended" | "left" = "new";
  #held: Batch = [];
  #heldBatches = 0;
  /** Batches that were taken, of which the other side does not know yet. */
  #untold = 0;
  #waiting: ((step: IteratorResult<Batch, undefined>) => void) | undefined;

  constructor(remote: Remote, observer?: GenerationObserver) {
    this.#remote = remote;
    this.observer = observer;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** One reader at a time. */
  next(): Promise<IteratorResult<Batch, undefined>> {
    if (this.#state === "new") {
      this.#state = "running";
      this.#remote.begin();
    }
    if (this.#held.length > 0) return Promise.resolve(this.#take());
    if (this.#state !== "running") return Promise.resolve(done);
    return new Promise((resolve) => (this.#waiting = resolve));
  }

  /** Cancels the work. */
  return(): Promise<IteratorResult<Batch, undefined>> {
    const isRunning = this.#state === "running";
    this.#state = "left";
    this.#held = [];
    if (isRunning) {
      this.#remote.leave();
      this.#remote.over();
    }
    this.#waiting?.(done);
    this.#waiting = undefined;
    return Promise.resolve(done);
  }

  /** What came from the engine; null: it is over without a further event. */
  receive(batch: Batch | null): void {
    if (this.#state !== "running") return;
    if (batch !== null) {
      this.#held = this.#held.length === 0 ? batch : [...this.#held, ...batch];
      this.#heldBatches++;
    }
    if (batch === null || batch.at(-1)?.type === "end") {
      this.#state = "ended";
      this.#remote.over();
    }
    if (!this.#waiting) return;
    this.#waiting(this.#held.length > 0 ? this.#take() : done);
    this.#waiting = undefined;
  }

  /** Ends it from this side: its reader gets this end, and the work is cancelled. */
  end(end: GenerationEnd): void {
    if (this.#state === "running") this.#remote.leave();
    this.receive([{ type: "end", end }]);
  }

  #take(): IteratorResult<Batch, undefined> {
    const value = this.#held;
    this.#held = [];
    this.#untold += this.#heldBatches;
    this.#heldBatches = 0;
    // Half of what may be under way: the engine need not wait for the news.
    if (this.#untold >= mostAhead / 2 && this.#state === "running") {
      this.#remote.taken(this.#untold);
      this.#untold = 0;
    }
    return { done: false, value };
  }
}
