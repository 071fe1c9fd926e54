import { canAnswer } from "../core/engine.ts";
import type { Engine, EngineQuestion } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { engineTopics, maxAhead, portableBatch, portableFailureOf } from "./engine-messages.ts";
import type {
  EngineState,
  LookUpAnswer,
  LookUpMessage,
  MissedMessage,
  OpenEngineMessage,
  RemoteGenerateMessage,
  TakenMessage,
} from "./engine-messages.ts";
import type { Peer } from "./peer.ts";

type Batch = readonly GenerationEvent[];

interface HostedEngine {
  readonly engine: Engine;
  readonly unwatch: () => void;
}

/** Lets a worker use the engines of this process. What is in progress for the worker ends with its connection. */
export class EngineHost {
  readonly #peer: Peer;
  readonly #states: EngineStates;
  readonly #engines = new Map<number, HostedEngine>();
  readonly #generations = new Map<number, HostedGeneration>();
  readonly #lookUps = new Map<number, AbortController>();
  readonly #find: (name: string) => Promise<Engine>;
  /** Batches to send, as JSON: those of one decode step, for all slots, are one message. */
  #queue: string[] = [];
  #hasEnded = false;

  /** `find` resolves to the engine of a name; it rejects if there is none. */
  constructor(peer: Peer, states: EngineStates, find: (name: string) => Promise<Engine>) {
    this.#peer = peer;
    this.#states = states;
    this.#find = find;
  }

  listen(): void {
    const peer = this.#peer;
    peer.onRequest(engineTopics.open, async (message) => {
      const { name, engine: number } = message as OpenEngineMessage;
      return this.#open(await this.#find(name), number);
    });
    peer.onNotification(engineTopics.close, (engine) => this.#close(engine as number));
    peer.onNotification(engineTopics.generate, (message) => void this.#generate(message as RemoteGenerateMessage));
    peer.onNotification(engineTopics.taken, (message) => {
      const [id, batches] = message as TakenMessage;
      this.#generations.get(id)?.taken(batches);
    });
    peer.onNotification(engineTopics.leave, (id) => this.#generations.get(id as number)?.leave());
    peer.onRequest(engineTopics.lookUp, (message) => this.#lookUp(message as LookUpMessage));
    peer.onNotification(engineTopics.lookUpLeft, (id) => this.#lookUps.get(id as number)?.abort());
    void peer.closed.then(() => this.#end());
  }

  #open(engine: Engine, number: number): EngineState {
    // The worker may have ended in the meantime.
    if (this.#hasEnded) return engineStateOf(engine);
    const unwatch = this.#states.watch(engine, (state) => this.#peer.notify(engineTopics.state, [number, state]));
    this.#engines.set(number, { engine, unwatch });
    return engineStateOf(engine);
  }

  #close(number: number): void {
    this.#engines.get(number)?.unwatch();
    this.#engines.delete(number);
  }

  async #generate({ engine: number, id, request }: RemoteGenerateMessage): Promise<void> {
    // Workers send requests to upstreams themselves, so there are no attempts here, and nothing is repaired.
    const observer: GenerationObserver = {
      attempt: () => ({ headers: {}, ended() {} }),
      repaired() {},
      cacheMissed: (miss) => this.#peer.notify(engineTopics.missed, [id, miss] satisfies MissedMessage),
    };
    const generation = new HostedGeneration(
      () => this.#engineOf(number).generate(JSON.parse(request) as GenerationRequest, observer),
      (batch) => this.#send(id, batch),
    );
    this.#generations.set(id, generation);
    await generation.run();
    this.#generations.delete(id);
  }

  /** Throws if a batch cannot be written as JSON. */
  #send(id: number, batch: Batch | null): void {
    const entry = `[${id},${JSON.stringify(batch)}]`;
    this.#queue.push(entry);
    if (this.#queue.length > 1) return;
    process.nextTick(() => {
      const entries = this.#queue;
      this.#queue = [];
      this.#peer.notify(engineTopics.events, `[${entries.join(",")}]`);
    });
  }

  async #lookUp({ engine: number, id, kind, request }: LookUpMessage): Promise<LookUpAnswer> {
    const controller = new AbortController();
    this.#lookUps.set(id, controller);
    try {
      const engine = this.#engineOf(number);
      if (!canAnswer(engine, kind)) throw new Error(`The engine does not answer ${kind}.`);
      const question = { kind, request: JSON.parse(request) as unknown } as EngineQuestion;
      return { value: await engine.ask(question, controller.signal) };
    } catch (error) {
      return { failure: portableFailureOf(error) };
    } finally {
      this.#lookUps.delete(id);
    }
  }

  #engineOf(number: number): Engine {
    const hosted = this.#engines.get(number);
    if (!hosted) throw new Error(`There is no engine ${number}.`);
    return hosted.engine;
  }

  #end(): void {
    this.#hasEnded = true;
    for (const generation of this.#generations.values()) generation.leave();
    for (const controller of this.#lookUps.values()) controller.abort();
    for (const number of this.#engines.keys()) this.#close(number);
  }
}

/** A generation that is pulled for a reader in another process, at most `maxAhead` batches ahead of it. */
class HostedGeneration {
  readonly #start: () => AsyncIterable<Batch>;
  readonly #send: (batch: Batch | null) => void;
  #iterator: AsyncIterator<Batch> | undefined;
  #credit = maxAhead;
  #hasLeft = false;
  #wake: (() => void) | undefined;

  /** `send` may throw for a batch that cannot be sent; null: the generation has ended without a further event. */
  constructor(start: () => AsyncIterable<Batch>, send: (batch: Batch | null) => void) {
    this.#start = start;
    this.#send = send;
  }

  /** Pulls until the generation ends or the reader leaves; never rejects. */
  async run(): Promise<void> {
    try {
      const iterator = this.#start()[Symbol.asyncIterator]();
      this.#iterator = iterator;
      while (!this.#hasLeft) {
        if (this.#credit === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        if (this.#hasLeft) return;
        const step = await iterator.next();
        if (this.#hasLeft) return;
        if (step.done === true) return this.#send(null);
        // The reader would never take an empty batch, nor return its credit.
        if (step.value.length === 0) continue;
        this.#credit--;
        this.#send(portableBatch(step.value));
        if (step.value.at(-1)?.type !== "end") continue;
        // The engine may run code after its last batch.
        const after = await iterator.next();
        if (after.done !== true) this.leave();
        return;
      }
    } catch (error) {
      if (this.#hasLeft) return;
      this.leave();
      this.#send([{ type: "end", end: { kind: "engine-error", failure: portableFailureOf(error) } }]);
    }
  }

  /** Adds credit: the reader has taken this number of batches. */
  taken(batches: number): void {
    this.#credit += batches;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Called when the reader has left: cancels the work of the engine. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#wake?.();
    this.#iterator?.return?.().catch(() => {});
  }
}

/** Engines do not report changes of their state, so it is polled. In milliseconds. */
const pollMs = 100;

interface WatchedEngine {
  readonly listeners: Set<(state: EngineState) => void>;
  /** The state that the listeners know, as JSON. */
  reported: string;
}

/** Reports state changes of engines: loading, queue length, models. */
export class EngineStates {
  readonly #watched = new Map<Engine, WatchedEngine>();
  #timer: NodeJS.Timeout | undefined;

  /** Calls `listener` when the state of the engine changes. Returns a function that ends that. */
  watch(engine: Engine, listener: (state: EngineState) => void): () => void {
    // The caller knows the current state, so that must be the reported one.
    this.poll();
    const watched = this.#watched.get(engine) ?? {
      listeners: new Set(),
      reported: JSON.stringify(engineStateOf(engine)),
    };
    this.#watched.set(engine, watched);
    watched.listeners.add(listener);
    this.#timer ??= setInterval(() => this.poll(), pollMs).unref();
    return () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size === 0) this.#watched.delete(engine);
      if (this.#watched.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Polls now, for callers that have just changed something. */
  poll(): void {
    for (const [engine, watched] of this.#watched) {
      const state = engineStateOf(engine);
      const text = JSON.stringify(state);
      if (text === watched.reported) continue;
      watched.reported = text;
      for (const listener of watched.listeners) listener(state);
    }
  }
}

function engineStateOf(engine: Engine): EngineState {
  return {
    models: engine.models(),
    health: engine.health(),
    questions: engine.questions?.() ?? [],
  };
}
