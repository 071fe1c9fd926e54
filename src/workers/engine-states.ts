import type { Engine } from "../core/engine.ts";
import type { EngineState } from "./engine-messages.ts";

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
    questions: engine.questions?.() ?? [],
  };
}
