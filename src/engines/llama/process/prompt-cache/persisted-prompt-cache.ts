import {
  statSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import type { Observe } from "../../../../core/observe.ts";
import type { OpenMessage } from "../../protocol.ts";
import { minCopyTokens, type PromptCache } from "./prompt-cache.ts";
import type { Sequence, SequenceState } from "./sequence.ts";
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { AdapterScales } from "../c-api/adapters.ts";

/** Keeps what is known of conversations over a restart: it is written at a clean stop, and read when the model is opened again. */
export class PersistedPromptCache {
  readonly #files: StateFiles;
  readonly #sequences: readonly Sequence[];
  readonly #states: PromptCache;
  readonly #log: Observe;

  constructor(files: StateFiles, sequences: readonly Sequence[], states: PromptCache, log: Observe) {
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
    for (const state of others) if (!this.#states.addIfFits(state)) break;
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
      if (sequence.length < minCopyTokens) continue;
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

/** What a state can be read with again: the model's file, and what its memory is laid out by. */
export type StateIdentity = Readonly<Record<string, unknown>>;

export interface StateFiles {
  readonly folder: string;
  /** The model's name: each has files of its own in the folder. */
  readonly name: string;
  readonly identity: StateIdentity;
}

interface Header {
  readonly format: 1;
  readonly identity: StateIdentity;
  /** How many. */
  readonly tokens: number;
  readonly adapters: AdapterScales;
  readonly cuttableFrom: number;
  readonly checkpoints: readonly { readonly length: number; readonly bytes: number }[];
  readonly bytes: number;
}

/** Of a SHA-256. */
const sumBytes = 32;
/** What the name of a file ends with until it is whole. */
const unfinished = ".tmp";

/**
 * Writes states, the newest first, in place of those that were there: each to a file of its own, which nobody else may read. A header as
 * one line of JSON, then the tokens as 32-bit numbers, the checkpoints, the state, and the SHA-256 of all that. Throws what the file
 * system throws.
 */
export function writeStates(files: StateFiles, states: Iterable<SequenceState>): number {
  mkdirSync(files.folder, { recursive: true, mode: 0o700 });
  let count = 0;
  for (const state of states) writeState(fileOf(files, count++), files.identity, state);
  for (const file of [...filesOf(files).slice(count), ...filesOf(files, unfinished)]) rmSync(file, { force: true });
  return count;
}

/**
 * Reads the states that were written, the newest first, and removes their files: what was read once is not read again, so that no file
 * can stop a model from being opened twice. `ignored` hears of each that does not fit, which stays.
 */
export function* readStates(files: StateFiles, ignored: (file: string, why: string) => void): Generator<SequenceState> {
  for (const file of filesOf(files)) {
    let state: SequenceState;
    try {
      state = readState(readFileSync(file), files.identity);
      rmSync(file);
    } catch (error) {
      ignored(file, error instanceof Error ? error.message : String(error));
      continue;
    }
    yield state;
  }
}

function writeState(file: string, identity: StateIdentity, state: SequenceState): void {
  const { tokens, adapters, truncatableFrom: cuttableFrom, checkpoints } = state;
  const header: Header = {
    format: 1,
    identity,
    tokens: tokens.length,
    adapters,
    cuttableFrom,
    checkpoints: checkpoints.map(({ length, state: { byteLength: bytes } }) => ({ length, bytes })),
    bytes: state.state.byteLength,
  };
  const parts = [
    Buffer.from(`${JSON.stringify(header)}\n`),
    new Uint8Array(Int32Array.from(tokens).buffer),
    ...checkpoints.map((checkpoint) => checkpoint.state),
    state.state,
  ];
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  // Not there until it is whole.
  const temporary = `${file}${unfinished}`;
  rmSync(temporary, { force: true });
  const to = openSync(temporary, "wx", 0o600);
  try {
    for (const part of [...parts, hash.digest()]) for (let at = 0; at < part.length;) at += writeSync(to, part, at);
    fsyncSync(to);
  } finally {
    closeSync(to);
  }
  renameSync(temporary, file);
}

/** Throws an Error that says why it does not fit. */
function readState(content: Buffer, identity: StateIdentity): SequenceState {
  const sum = content.subarray(-sumBytes);
  const whole = content.subarray(0, -sumBytes);
  if (!createHash("sha256").update(whole).digest().equals(sum)) throw new Error("it is damaged");
  const end = whole.indexOf(10);
  const header = JSON.parse(whole.toString("utf8", 0, end)) as Header;
  if (header.format !== 1 || JSON.stringify(header.identity) !== JSON.stringify(identity))
    throw new Error("it was written for another model or with other settings");
  const body = whole.subarray(end + 1);
  let at = 0;
  const take = (bytes: number): Buffer => body.subarray(at, (at += bytes));
  const numbers = take(header.tokens * 4);
  const tokens = Array.from({ length: header.tokens }, (_, i) => numbers.readInt32LE(i * 4));
  const checkpoints = header.checkpoints.map(({ length, bytes }) => ({ length, state: copyOf(take(bytes)) }));
  const { adapters, cuttableFrom } = header;
  return { tokens, adapters, truncatableFrom: cuttableFrom, checkpoints, state: copyOf(take(header.bytes)) };
}

/** Of its own, so that what is forgotten of a file is freed. */
function copyOf(part: Buffer): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(part.length);
  part.copy(copy);
  return copy;
}

function fileOf({ folder, name }: StateFiles, number: number): string {
  return join(folder, `${encodeURIComponent(name)}.${number}.state`);
}

/** Those of this model, in the order of their numbers. */
function filesOf(files: StateFiles, ending: "" | typeof unfinished = ""): string[] {
  const { folder, name } = files;
  const prefix = `${encodeURIComponent(name)}.`;
  const numbers: number[] = [];
  for (const file of namesIn(folder)) {
    const number = file.startsWith(prefix) ? /^(\d+)\.state(\.tmp)?$/.exec(file.slice(prefix.length)) : null;
    if (number && (number[2] ?? "") === ending) numbers.push(Number(number[1]));
  }
  return numbers.toSorted((one, other) => one - other).map((number) => `${fileOf(files, number)}${ending}`);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // It is made when there is something to write.
    return [];
  }
}
