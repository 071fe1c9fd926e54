import type { QuestionKind } from "../core/engine.ts";
import { engineTopics } from "./engine-messages.ts";
import type { EngineState, EventsMessage, OpenMessage, StateMessage } from "./engine-messages.ts";
import type { GenerateMessage, LookUpAnswer, LookUpMessage, MissedMessage, TakenMessage } from "./engine-messages.ts";
import type { Peer } from "./peer.ts";
import { primaryGone, RemoteEngine } from "./remote-engine.ts";
import type { RemoteGeneration } from "./remote-generation.ts";

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
        lookUp: (kind, request, signal) => this.#lookUp(number, kind, request, signal),
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

  async #lookUp<K extends QuestionKind>(
    engine: number,
    kind: K,
    request: string,
    signal: AbortSignal,
  ): Promise<LookUpAnswer<K>> {
    signal.throwIfAborted();
    const id = ++this.#lastId;
    const message: LookUpMessage = { engine, id, kind, request };
    const answer = this.#peer.ask(engineTopics.lookUp, message).catch(() => ({ failure: primaryGone }));
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#peer.tell(engineTopics.lookUpLeft, id);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      void answer.then((value) => {
        signal.removeEventListener("abort", leave);
        resolve(value as LookUpAnswer<K>);
      });
    });
  }
}
