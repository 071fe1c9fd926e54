import { canAnswer } from "../core/engine.ts";
import type { Engine, EngineQuestion } from "../core/engine.ts";
import type { GenerationObserver } from "../core/generation-observer.ts";
import type { GenerationRequest } from "../core/request.ts";
import { engineTopics } from "./engine-messages.ts";
import type {
  EngineState,
  GenerateMessage,
  LookUpAnswer,
  LookUpMessage,
  MissedMessage,
  OpenMessage,
  TakenMessage,
} from "./engine-messages.ts";
import { stateOf } from "./engine-states.ts";
import type { EngineStates } from "./engine-states.ts";
import { HostedGeneration } from "./hosted-generation.ts";
import { Outbox } from "./outbox.ts";
import type { Peer } from "./peer.ts";
import { failureOf } from "./portable-failure.ts";

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

  async #lookUp({ engine: number, id, kind, request }: LookUpMessage): Promise<LookUpAnswer> {
    const controller = new AbortController();
    this.#lookUps.set(id, controller);
    try {
      const engine = this.#engineOf(number);
      if (!canAnswer(engine, kind)) throw new Error(`The engine does not answer ${kind}.`);
      const question = { kind, request: JSON.parse(request) as unknown } as EngineQuestion;
      return { value: await engine.ask(question, controller.signal) };
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
