import { statSync } from "node:fs";
import type { Observe } from "../../../core/observe.ts";
import type { OpenMessage } from "../protocol.ts";
import { worthKeeping, type KeptStates } from "./kept-states.ts";
import type { Sequence, SequenceState } from "./sequence.ts";
import { readStates, writeStates, type StateFiles, type StateIdentity } from "./state-files.ts";

/** Keeps what is known of conversations over a restart: it is written at a clean stop, and read when the model is opened again. */
export class OutlastingStates {
  readonly #files: StateFiles;
  readonly #sequences: readonly Sequence[];
  readonly #states: KeptStates;
  readonly #log: Observe;

  constructor(files: StateFiles, sequences: readonly Sequence[], states: KeptStates, log: Observe) {
    this.#files = files;
    this.#sequences = sequences;
    this.#states = states;
    this.#log = log;
  }

  /** Gives each slot a state, the newest first, and keeps the others beside them as far as there is room. */
  read(): void {
    const ignored = (file: string, why: string): void => this.#log(`${file} is not used: ${why}.`, "warn");
    const free = this.#sequences.filter(({ length }) => length === 0);
    const others: SequenceState[] = [];
    let failed = 0;
    for (const state of readStates(this.#files, ignored)) {
      const sequence = free.shift();
      if (!sequence) others.push(state);
      else {
        sequence.restore(state);
        if (sequence.length === 0) failed++;
      }
    }
    if (failed > 0) this.#log(`${failed} states of ${this.#files.folder} do not fit into the memory.`, "warn");
    for (const state of others) if (!this.#states.addIfRoom(state)) break;
  }

  /** Writes what slots know and what is kept beside them. `sequences`: in the order of their use, the last used one first. */
  write(sequences: readonly Sequence[]): void {
    try {
      const count = writeStates(this.#files, this.#all(sequences));
      this.#log(`${count} states of conversations were written to ${this.#files.folder}.`, "info");
    } catch (error) {
      this.#log(`States were not written to ${this.#files.folder}: ${String(error)}`, "warn");
    }
  }

  *#all(sequences: readonly Sequence[]): Generator<SequenceState> {
    for (const sequence of sequences) {
      if (sequence.length < worthKeeping) continue;
      const state = sequence.copy();
      if (state) yield state;
    }
    yield* this.#states.states.toReversed();
  }
}

/** By what a state is known to fit: the model's file, how its memory is laid out, and the version of llama.cpp. */
export function stateIdentity(
  path: string,
  version: string,
  oneMemory: boolean,
  { slots, cacheTypeK, cacheTypeV, adapters = [] }: OpenMessage,
): StateIdentity {
  const { size, mtimeMs } = statSync(path);
  const ofAdapters = adapters.map((adapter) => [adapter.path, statSync(adapter.path).mtimeMs]);
  return { llama: version, size, changed: mtimeMs, slots, oneMemory, cacheTypeK, cacheTypeV, adapters: ofAdapters };
}
