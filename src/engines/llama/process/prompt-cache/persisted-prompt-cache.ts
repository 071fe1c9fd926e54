import { createHash } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { LogListener } from "../../../../wire/core/generation-observer.ts";
import type { OpenModelMessage } from "../../protocol.ts";
import type { AdapterScales } from "../c-api/adapters.ts";
import { minCopyTokens, type PromptCache } from "./prompt-cache.ts";
import type { Sequence, SequenceState, StateBlock } from "./sequence.ts";

/** Persists the prompt cache: it is written at a clean stop, and read when the model is opened again. */
export class PersistedPromptCache {
  readonly #files: StateFiles;
  readonly #sequences: readonly Sequence[];
  readonly #cache: PromptCache;
  readonly #log: LogListener;

  constructor(files: StateFiles, sequences: readonly Sequence[], cache: PromptCache, log: LogListener) {
    this.#files = files;
    this.#sequences = sequences;
    this.#cache = cache;
    this.#log = log;
  }

  /** Restores one state to each slot, the newest first, and adds the others to the prompt cache as far as they fit. */
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
    for (const state of others) if (!this.#cache.addIfFits(state)) break;
  }

  /** Writes all sequences and copies. `sequences`: the last used one first. */
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
    yield* this.#cache.states.toReversed();
  }
}

/** Identifies states that a model can restore: its file, the layout of its KV cache, and the version of llama.cpp. */
export function stateIdentity(
  path: string,
  version: string,
  unifiedKv: boolean,
  { slots, cacheTypeK, cacheTypeV, adapters = [] }: OpenModelMessage,
  mmproj?: string,
): StateIdentity {
  const { size, mtimeMs } = statSync(path);
  const ofProjector = mmproj === undefined ? {} : { mmproj: statSync(mmproj).mtimeMs };
  const ofAdapters = adapters.map((adapter) => [adapter.path, statSync(adapter.path).mtimeMs]);
  // The names are part of the file format.
  const layout = { slots, oneMemory: unifiedKv, cacheTypeK, cacheTypeV };
  return { llama: version, size, changed: mtimeMs, ...layout, adapters: ofAdapters, ...ofProjector };
}

/** A state is restored only where it was written with the same identity. */
export type StateIdentity = Readonly<Record<string, unknown>>;

export interface StateFiles {
  readonly folder: string;
  /** The model's name. Models with other names have other files in the folder. */
  readonly name: string;
  readonly identity: StateIdentity;
}

/** The first line of a file, as JSON. */
interface Header {
  readonly format: 3;
  readonly identity: StateIdentity;
  /** Number of tokens. */
  readonly tokens: number;
  readonly adapters: AdapterScales;
  /** The images in the tokens: start, number of rows, positions. */
  readonly images: readonly (readonly [number, number, number])[];
  readonly promptTokens: number;
  /** `truncatableFrom` of the state. */
  readonly cuttableFrom: number;
  readonly checkpoints: readonly StoredPart[];
  readonly blocks: readonly StoredPart[];
}

/** A checkpoint or a block: its length in tokens, and its size. */
interface StoredPart {
  readonly length: number;
  readonly bytes: number;
}

/** Length of a SHA-256. */
const hashBytes = 32;
/** The extension of a file that is being written. */
const unfinished = ".tmp";

/**
 * Writes states, the newest first, in place of the previous ones. Each has its own file, which only this user may read: a header as one
 * line of JSON, the tokens as 32-bit numbers, the checkpoints, the blocks, and the SHA-256 of all that. Throws errors of the file system.
 */
export function writeStates(files: StateFiles, states: Iterable<SequenceState>): number {
  mkdirSync(files.folder, { recursive: true, mode: 0o700 });
  let count = 0;
  for (const state of states) writeState(fileOf(files, count++), files.identity, state);
  for (const file of [...filesOf(files).slice(count), ...filesOf(files, unfinished)]) rmSync(file, { force: true });
  return count;
}

/**
 * Reads the states, the newest first, and removes their files: each is read once, so that no file can prevent a model from being opened
 * twice. Calls `ignored` for each file that does not fit, which stays.
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
  const { tokens, images, adapters, truncatableFrom: cuttableFrom, checkpoints, blocks, promptLength } = state;
  const stored = ({ length, state: { byteLength: bytes } }: StateBlock): StoredPart => ({ length, bytes });
  const header: Header = {
    format: 3,
    identity,
    tokens: tokens.length,
    adapters,
    images: images.map(({ start, count, positions }) => [start, count, positions]),
    promptTokens: promptLength,
    cuttableFrom,
    checkpoints: checkpoints.map(stored),
    blocks: blocks.map(stored),
  };
  const parts = [
    Buffer.from(`${JSON.stringify(header)}\n`),
    new Uint8Array(Int32Array.from(tokens).buffer),
    ...[...checkpoints, ...blocks].map((part) => part.state),
  ];
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  // The file has its final name only when it is complete.
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

/** Throws an Error with the reason if the file does not fit. */
function readState(content: Buffer, identity: StateIdentity): SequenceState {
  const sum = content.subarray(-hashBytes);
  const whole = content.subarray(0, -hashBytes);
  if (!createHash("sha256").update(whole).digest().equals(sum)) throw new Error("it is damaged");
  const end = whole.indexOf(10);
  const header = JSON.parse(whole.toString("utf8", 0, end)) as Header;
  if (header.format !== 3 || JSON.stringify(header.identity) !== JSON.stringify(identity))
    throw new Error("it was written for another model or with other settings");
  const body = whole.subarray(end + 1);
  let at = 0;
  const take = (bytes: number): Buffer => body.subarray(at, (at += bytes));
  const numbers = take(header.tokens * 4);
  const tokens = Array.from({ length: header.tokens }, (_, i) => numbers.readInt32LE(i * 4));
  const read = ({ length, bytes }: StoredPart): StateBlock => ({ length, state: copyOf(take(bytes)) });
  const checkpoints = header.checkpoints.map(read);
  const blocks = header.blocks.map(read);
  const { adapters, cuttableFrom, promptTokens: promptLength } = header;
  const images = header.images.map(([start, count, positions]) => ({ start, count, positions }));
  return { tokens, images, adapters, truncatableFrom: cuttableFrom, promptLength, checkpoints, blocks };
}

/** A copy that does not keep the whole file in memory. */
function copyOf(part: Buffer): Uint8Array {
  const copy = Buffer.allocUnsafeSlow(part.length);
  part.copy(copy);
  return copy;
}

/**
 * The beginning of a model's files. Only lower case, since names that differ in case alone are one file on Windows and macOS, and without the
 * characters that Windows refuses.
 */
function prefixOf(name: string): string {
  const encoded = name.replaceAll(/[^a-z0-9_-]/gu, (character) => `%${Buffer.from(character).toString("hex")}`);
  return `${encoded}.`;
}

function fileOf({ folder, name }: StateFiles, number: number): string {
  return join(folder, `${prefixOf(name)}${number}.state`);
}

/** The files of this model, in the order of their numbers. */
function filesOf(files: StateFiles, ending: "" | typeof unfinished = ""): string[] {
  const { folder, name } = files;
  const prefix = prefixOf(name);
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
    // The folder is created when there is something to write.
    return [];
  }
}
