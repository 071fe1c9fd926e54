import type { DetokenizeRequest, EmbeddingRequest, Engine, RerankRequest, TokenizeRequest } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { abilities, engineTopics, failureOf, mostAhead, portableBatch } from "./engine-messages.ts";
import type {
  EngineState,
  GenerateMessage,
  LookUpAnswer,
  LookUpMessage,
  MissedMessage,
  OpenMessage,
  TakenMessage,
} from "./engine-messages.ts";
import type { Peer } from "./peer.ts";

interface HostedEngine {
  readonly engine: Engine;
  readonly unwatch: () => void;
}

/** Lets a worker use the engines of this process. What it has under way ends with its connection. */
export class EngineHost {
  readonly #peer: Peer;
  readonly #states: EngineStates;
  readonly #engines = new Map<number, HostedEngine>();
  readonly #generations = new Map<number, HostedGeneration>();
  readonly #lookUps = new Map<number, AbortController>();
  readonly #find: (name: string) => Promise<Engine>;
  readonly #outbox: Outbox;
  #isOver = false;

  /** `find`: the engine of a name; rejects where there is none. */
  constructor(peer: Peer, states: EngineStates, find: (name: string) => Promise<Engine>) {
    this.#peer = peer;
    this.#states = states;
    this.#find = find;
    this.#outbox = new Outbox(peer);
  }

  listen(): void {
    const peer = this.#peer;
    peer.answer(engineTopics.open, async (message) => {
      const { name, engine: number } = message as OpenMessage;
      return this.#open(await this.#find(name), number);
    });
    peer.hear(engineTopics.close, (engine) => this.#close(engine as number));
    peer.hear(engineTopics.generate, (message) => void this.#generate(message as GenerateMessage));
    peer.hear(engineTopics.taken, (message) => {
      const [id, batches] = message as TakenMessage;
      this.#generations.get(id)?.taken(batches);
    });
    peer.hear(engineTopics.leave, (id) => this.#generations.get(id as number)?.leave());
    peer.answer(engineTopics.lookUp, (message) => this.#lookUp(message as LookUpMessage));
    peer.hear(engineTopics.lookUpLeft, (id) => this.#lookUps.get(id as number)?.abort());
    void peer.closed.then(() => this.#end());
  }

  #open(engine: Engine, number: number): EngineState {
    // The worker may have ended while its engine was looked for.
    if (this.#isOver) return stateOf(engine);
    const unwatch = this.#states.watch(engine, (state) => this.#peer.tell(engineTopics.state, [number, state]));
    this.#engines.set(number, { engine, unwatch });
    return stateOf(engine);
  }

  #close(number: number): void {
    this.#engines.get(number)?.unwatch();
    this.#engines.delete(number);
  }

  async #generate({ engine: number, id, request }: GenerateMessage): Promise<void> {
    // Upstreams are asked by the workers themselves: there are no attempts here, and nothing is repaired.
    const observer: GenerationObserver = {
      attempt: () => ({ headers: {}, ended() {} }),
      repaired() {},
      cacheMissed: (miss) => this.#peer.tell(engineTopics.missed, [id, miss] satisfies MissedMessage),
    };
    const generation = new HostedGeneration(
      () => this.#engineOf(number).generate(JSON.parse(request) as GenerationRequest, observer),
      (batch) => this.#outbox.add(id, batch),
    );
    this.#generations.set(id, generation);
    await generation.run();
    this.#generations.delete(id);
  }

  async #lookUp({ engine: number, id, about, request }: LookUpMessage): Promise<LookUpAnswer> {
    const controller = new AbortController();
    this.#lookUps.set(id, controller);
    try {
      const engine = this.#engineOf(number);
      const answer = ask(engine, about, JSON.parse(request), controller.signal);
      if (!answer) throw new Error(`The engine cannot be asked for ${about}.`);
      return { value: await answer } as LookUpAnswer;
    } catch (error) {
      return { failure: failureOf(error) };
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
    this.#isOver = true;
    for (const generation of this.#generations.values()) generation.leave();
    for (const controller of this.#lookUps.values()) controller.abort();
    for (const number of this.#engines.keys()) this.#close(number);
  }
}

function ask(
  engine: Engine,
  about: LookUpMessage["about"],
  request: unknown,
  signal: AbortSignal,
): Promise<unknown> | undefined {
  switch (about) {
    case "countTokens":
      return engine.countTokens?.(request as GenerationRequest, signal);
    case "tokenize":
      return engine.tokenize?.(request as TokenizeRequest, signal);
    case "detokenize":
      return engine.detokenize?.(request as DetokenizeRequest, signal);
    case "applyTemplate":
      return engine.applyTemplate?.(request as GenerationRequest, signal);
    case "slots":
      return engine.slots?.(signal);
    case "embed":
      return engine.embed?.(request as EmbeddingRequest, signal);
    case "rerank":
      return engine.rerank?.(request as RerankRequest, signal);
  }
}

type Batch = readonly GenerationEvent[];

/** A generation that is pulled here for a reader in another process, and only a few batches ahead of it. */
export class HostedGeneration {
  readonly #start: () => AsyncIterable<Batch>;
  readonly #send: (batch: Batch | null) => void;
  #iterator: AsyncIterator<Batch> | undefined;
  #credit = mostAhead;
  #left = false;
  #wake: (() => void) | undefined;

  /** `send`: null tells that the generation is over without a further event. It may throw for a batch that cannot be sent. */
  constructor(start: () => AsyncIterable<Batch>, send: (batch: Batch | null) => void) {
    this.#start = start;
    this.#send = send;
  }

  /** Pulls to the end, or until the reader has left; never rejects. */
  async run(): Promise<void> {
    try {
      const iterator = this.#start()[Symbol.asyncIterator]();
      this.#iterator = iterator;
      while (!this.#left) {
        if (this.#credit === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
        if (this.#left) return;
        const step = await iterator.next();
        if (this.#left) return;
        if (step.done === true) return this.#send(null);
        // Its reader would not see it, so it would never be taken.
        if (step.value.length === 0) continue;
        this.#credit--;
        this.#send(portableBatch(step.value));
        if (step.value.at(-1)?.type !== "end") continue;
        // Lets the engine run its code after the last batch, where it may clean up.
        const after = await iterator.next();
        if (after.done !== true) this.leave();
        return;
      }
    } catch (error) {
      if (this.#left) return;
      this.leave();
      this.#send([{ type: "end", end: { kind: "engine-error", failure: failureOf(error) } }]);
    }
  }

  /** The reader has taken so many batches more. */
  taken(batches: number): void {
    this.#credit += batches;
    this.#wake?.();
    this.#wake = undefined;
  }

  /** The reader is gone: the engine's work is cancelled. */
  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#wake?.();
    this.#iterator?.return?.().catch(() => {});
  }
}

/** Batches on their way to a worker: what one step of a model brings for all its sequences is one message. */
export class Outbox {
  readonly #peer: Peer;
  /** JSON texts of entries. */
  #waiting: string[] = [];

  constructor(peer: Peer) {
    this.#peer = peer;
  }

  /** null: the generation is over. Throws where a batch is no JSON. */
  add(id: number, batch: readonly GenerationEvent[] | null): void {
    const entry = `[${id},${JSON.stringify(batch)}]`;
    if (this.#waiting.length === 0) process.nextTick(() => this.#send());
    this.#waiting.push(entry);
  }

  #send(): void {
    const entries = this.#waiting;
    this.#waiting = [];
    this.#peer.tell(engineTopics.events, `[${entries.join(",")}]`);
  }
}

/** Engines do not say when their state changes, so it is looked at so often. In milliseconds. */
const everyMs = 100;

interface Watched {
  readonly listeners: Set<(state: EngineState) => void>;
  /** The last state that the listeners were told, as JSON. */
  told: string;
}

/** Tells what becomes of engines: whether they are loaded, how many wait, which models they have. */
export class EngineStates {
  readonly #watched = new Map<Engine, Watched>();
  #timer: NodeJS.Timeout | undefined;

  /** Calls `listener` when the state is another one than `told` before. The function that is returned ends that. */
  watch(engine: Engine, listener: (state: EngineState) => void): () => void {
    // The listener knows the state of this moment; `told` is to be the same.
    this.tell();
    const watched = this.#watched.get(engine) ?? { listeners: new Set(), told: JSON.stringify(stateOf(engine)) };
    this.#watched.set(engine, watched);
    watched.listeners.add(listener);
    this.#timer ??= setInterval(() => this.tell(), everyMs).unref();
    return () => {
      watched.listeners.delete(listener);
      if (watched.listeners.size === 0) this.#watched.delete(engine);
      if (this.#watched.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    };
  }

  /** Looks now: whoever has just changed something need not wait for its turn. */
  tell(): void {
    for (const [engine, watched] of this.#watched) {
      const state = stateOf(engine);
      const text = JSON.stringify(state);
      if (text === watched.told) continue;
      watched.told = text;
      for (const listener of watched.listeners) listener(state);
    }
  }
}

export function stateOf(engine: Engine): EngineState {
  return {
    models: engine.models(),
    health: engine.health(),
    abilities: abilities.filter((ability) => engine[ability] !== undefined),
  };
}
