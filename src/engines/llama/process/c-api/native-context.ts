import { cacheTypes, defaultCacheType, type CacheType } from "../../cache-type.ts";
import { makeContext, type MadeContext } from "./make-context.ts";
import { NativeBatch } from "./native-batch.ts";
import type { LlamaApi } from "./llama-api.ts";
import type { NativeModel } from "./native-model.ts";
import type { Pointer } from "./structs.ts";

export interface NativeContextOptions {
  /** Tokens that all sequences hold together. */
  readonly room: number;
  readonly sequences: number;
  /** Tokens of one pass at most. */
  readonly batchSize: number;
  /** Tokens of one pass whose logits are wanted, at most. */
  readonly outputs: number;
  readonly threads: number;
  /**
   * All sequences live in one memory, so that each may take what the others leave, and what they begin with alike is there once. The
   * price: each looks past what the others have there, so for many that share nothing it is slower.
   */
  readonly oneMemory: boolean;
  /** "auto": as llama.cpp decides. */
  readonly flashAttention: "auto" | boolean;
  /** How keys and values are kept; default f16. */
  readonly cacheTypeK?: CacheType;
  readonly cacheTypeV?: CacheType;
}

/** What of a sequence is copied: all, or the part that cannot be cut (recurrent states, layers with a window). */
export type StatePart = "all" | "uncuttable";

/** llama.h, `LLAMA_STATE_SEQ_FLAGS_*`. */
const stateFlags = { all: 0, uncuttable: 1 } as const;

/** How a pass ended: done, no room for its tokens, or ended early; nothing of it stays then. */
export type PassResult = "done" | "no-room" | "aborted";

const flashAttentionType = { auto: -1, false: 0, true: 1 } as const;

const mostRows = 1024;

/** A model's memory of sequences, and the passes that fill it. */
export class NativeContext {
  readonly model: NativeModel;
  readonly batch: NativeBatch;
  /** Tokens that all sequences hold together, as llama.cpp has made it. */
  readonly room: number;
  readonly outputs: number;
  readonly oneMemory: boolean;
  readonly threads: number;
  readonly pointer: Pointer;
  readonly #api: LlamaApi;
  readonly #memory: Pointer;
  readonly #made: MadeContext;
  /**
   * Rows of logits by their addresses, which are the same in each pass. To V8 a new view of memory is as much new memory, for which it
   * would collect garbage.
   */
  readonly #rows = new Map<bigint, Float32Array>();

  /** Throws an Error with llama.cpp's reason. */
  constructor(model: NativeModel, options: NativeContextOptions) {
    const { api } = model;
    const { room, sequences, batchSize, threads, oneMemory, flashAttention } = options;
    const { cacheTypeK = defaultCacheType, cacheTypeV = defaultCacheType } = options;
    this.model = model;
    this.oneMemory = oneMemory;
    this.threads = threads;
    this.outputs = Math.min(batchSize, Math.max(options.outputs, sequences));
    this.#made = makeContext(
      model,
      { room, sequences, batchSize, threads },
      {
        n_outputs_max: this.outputs,
        flash_attn_type: flashAttentionType[`${flashAttention}`],
        type_k: cacheTypes[cacheTypeK].code,
        type_v: cacheTypes[cacheTypeV].code,
        kv_unified: oneMemory,
      },
    );
    const { pointer } = this.#made;
    this.#api = api;
    this.pointer = pointer;
    this.#memory = api.llama_get_memory(pointer);
    this.room = api.llama_n_ctx(pointer);
    this.batch = new NativeBatch(api.koffi, batchSize);
  }

  free(): void {
    this.#made.free();
    this.batch.free();
  }

  /** Evaluates the batch, now. Throws an Error with llama.cpp's reason. */
  pass(): PassResult {
    return this.#resultOf(this.#api.llama_decode(this.pointer, this.batch.struct));
  }

  /** The same in another thread: until it is done, nothing else may be asked of the context but `abort`. */
  passBeside(): Promise<PassResult> {
    return new Promise((resolve, reject) => {
      this.#api.llama_decode.async(this.pointer, this.batch.struct, (error, code) => {
        this.#made.abort.lower();
        try {
          if (error) throw error as Error;
          resolve(this.#resultOf(code));
        } catch (failure) {
          reject(failure as Error);
        }
      });
    });
  }

  /** Ends the pass that is under way in the other thread, on a processor; what a GPU does goes to its end. */
  abort(): void {
    this.#made.abort.raise();
  }

  #resultOf(code: number): PassResult {
    if (code === 0) return "done";
    if (code === 1) return "no-room";
    if (code === 2) return "aborted";
    throw new Error(
      `llama.cpp could not evaluate a batch (${code}): ${this.#api.takeComplaint() ?? "no reason given"}`,
    );
  }

  /**
   * The logits behind the token at an index of the last batch, in llama.cpp's own memory: what is written there is what its samplers
   * read. Valid until the next pass.
   */
  logits(index: number): Float32Array {
    const at = this.#api.llama_get_logits_ith(this.pointer, index);
    if (at === null) throw new Error(`There are no logits at ${index}.`);
    let row = this.#rows.get(at);
    if (!row) {
      if (this.#rows.size >= mostRows) this.#rows.clear();
      row = new Float32Array(this.#api.koffi.view(at, this.model.vocabularySize * 4));
      this.#rows.set(at, row);
    }
    return row;
  }

  /** Forgets a sequence's tokens from a position on; false: this memory cannot be cut there, and is as it was. */
  cut(sequence: number, from: number): boolean {
    return this.#api.llama_memory_seq_rm(this.#memory, sequence, from, -1);
  }

  /** Forgets a sequence. */
  forget(sequence: number): void {
    this.#api.llama_memory_seq_rm(this.#memory, sequence, -1, -1);
  }

  /** Gives an empty sequence all that another one knows; in one memory both share it, else it is copied there. */
  share(from: number, to: number): void {
    this.#api.llama_memory_seq_cp(this.#memory, from, to, -1, -1);
  }

  /** What a copy of this part of a sequence takes. */
  stateBytes(sequence: number, part: StatePart): number {
    return Number(this.#api.llama_state_seq_get_size_ext(this.pointer, sequence, stateFlags[part]));
  }

  /** A copy of this part of a sequence; null: llama.cpp cannot make one, or there is no memory for it. */
  stateOf(sequence: number, part: StatePart): Uint8Array | null {
    const size = this.stateBytes(sequence, part);
    const copy = allocated(size);
    if (!copy) return null;
    const flags = stateFlags[part];
    const written = Number(this.#api.llama_state_seq_get_data_ext(this.pointer, copy, size, sequence, flags));
    return size > 0 && written === size ? copy : null;
  }

  /** Puts a copy in the place of this part of a sequence; false: there is no room for it, and what is there now is undefined. */
  restore(sequence: number, state: Uint8Array, part: StatePart): boolean {
    const { length } = state;
    const read = this.#api.llama_state_seq_set_data_ext(this.pointer, state, length, sequence, stateFlags[part]);
    return Number(read) === length;
  }

  /** The first and the last position that a sequence knows; −1: none. */
  span(sequence: number): readonly [first: number, last: number] {
    const api = this.#api;
    return [api.llama_memory_seq_pos_min(this.#memory, sequence), api.llama_memory_seq_pos_max(this.#memory, sequence)];
  }
}

/** null: the system does not give so much. */
function allocated(bytes: number): Buffer | null {
  try {
    // Not a part of Node's pool, which would keep more than it is counted for.
    return Buffer.allocUnsafeSlow(bytes);
  } catch {
    return null;
  }
}
