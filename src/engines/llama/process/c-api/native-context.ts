import { cacheTypes, defaultCacheType, type CacheType } from "../../cache-type.ts";
import { createContext, type CreatedContext, NativeBatch } from "./make-context.ts";
import type { LlamaApi } from "./llama-api.ts";
import type { NativeModel } from "./native-model.ts";
import type { Pointer } from "./structs.ts";

export interface NativeContextOptions {
  /** Tokens that all sequences hold together. */
  readonly capacity: number;
  readonly sequences: number;
  /** Tokens of one pass at most. */
  readonly batchSize: number;
  /** Tokens of one pass whose logits are wanted, at most. */
  readonly maxOutputs: number;
  readonly threads: number;
  /**
   * All sequences live in one memory, so that each may take what the others leave, and what they begin with alike is there once. The
   * price: each looks past what the others have there, so for many that share nothing it is slower.
   */
  readonly unifiedKv: boolean;
  /** "auto": as llama.cpp decides. */
  readonly flashAttention: "auto" | boolean;
  /** How keys and values are kept; default f16. */
  readonly cacheTypeK?: CacheType;
  readonly cacheTypeV?: CacheType;
}

/** What of a sequence is copied: all, or the part that cannot be cut (recurrent states, layers with a window). */
export type StatePart = "all" | "partial";

/** llama.h, `LLAMA_STATE_SEQ_FLAGS_*`. */
const stateFlags = { all: 0, partial: 1 } as const;

/** How a pass ended: done, no room for its tokens, or ended early; nothing of it stays then. */
export type DecodeResult = "done" | "no-free-cells" | "aborted";

const flashAttentionType = { auto: -1, false: 0, true: 1 } as const;

const mostRows = 1024;

/** A model's memory of sequences, and the passes that fill it. */
export class NativeContext {
  readonly model: NativeModel;
  readonly batch: NativeBatch;
  /** Tokens that all sequences hold together, as llama.cpp has made it. */
  readonly capacity: number;
  readonly maxOutputs: number;
  readonly unifiedKv: boolean;
  readonly threads: number;
  readonly pointer: Pointer;
  readonly #api: LlamaApi;
  readonly #memory: Pointer;
  readonly #made: CreatedContext;
  /**
   * Rows of logits by their addresses, which are the same in each pass. To V8 a new view of memory is as much new memory, for which it
   * would collect garbage.
   */
  readonly #rows = new Map<bigint, Float32Array>();

  /** Throws an Error with llama.cpp's reason. */
  constructor(model: NativeModel, options: NativeContextOptions) {
    const { api } = model;
    const { capacity: room, sequences, batchSize, threads, unifiedKv: oneMemory, flashAttention } = options;
    const { cacheTypeK = defaultCacheType, cacheTypeV = defaultCacheType } = options;
    this.model = model;
    this.unifiedKv = oneMemory;
    this.threads = threads;
    this.maxOutputs = Math.min(batchSize, Math.max(options.maxOutputs, sequences));
    this.#made = createContext(
      model,
      { capacity: room, sequences, batchSize, threads },
      {
        n_outputs_max: this.maxOutputs,
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
    this.capacity = api.llama_n_ctx(pointer);
    this.batch = new NativeBatch(api.koffi, batchSize);
  }

  free(): void {
    this.#made.free();
    this.batch.free();
  }

  /** Evaluates the batch, now. Throws an Error with llama.cpp's reason. */
  decode(): DecodeResult {
    return this.#resultOf(this.#api.llama_decode(this.pointer, this.batch.struct));
  }

  /** The same in another thread: until it is done, nothing else may be asked of the context but `abort`. */
  decodeAsync(): Promise<DecodeResult> {
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

  #resultOf(code: number): DecodeResult {
    if (code === 0) return "done";
    if (code === 1) return "no-free-cells";
    if (code === 2) return "aborted";
    throw new Error(`llama.cpp could not evaluate a batch (${code}): ${this.#api.takeError() ?? "no reason given"}`);
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
  truncate(sequence: number, from: number): boolean {
    return this.#api.llama_memory_seq_rm(this.#memory, sequence, from, -1);
  }

  /** Forgets a sequence. */
  clear(sequence: number): void {
    this.#api.llama_memory_seq_rm(this.#memory, sequence, -1, -1);
  }

  /** Gives an empty sequence all that another one knows; in one memory both share it, else it is copied there. */
  copy(from: number, to: number): void {
    this.#api.llama_memory_seq_cp(this.#memory, from, to, -1, -1);
  }

  /** What a copy of this part of a sequence takes. */
  stateSize(sequence: number, part: StatePart): number {
    return Number(this.#api.llama_state_seq_get_size_ext(this.pointer, sequence, stateFlags[part]));
  }

  /** A copy of this part of a sequence; null: llama.cpp cannot make one, or there is no memory for it. */
  readState(sequence: number, part: StatePart): Uint8Array | null {
    const size = this.stateSize(sequence, part);
    const copy = allocated(size);
    if (!copy) return null;
    const flags = stateFlags[part];
    const written = Number(this.#api.llama_state_seq_get_data_ext(this.pointer, copy, size, sequence, flags));
    return size > 0 && written === size ? copy : null;
  }

  /** Puts a copy in the place of this part of a sequence; false: there is no room for it, and what is there now is undefined. */
  writeState(sequence: number, state: Uint8Array, part: StatePart): boolean {
    const { length } = state;
    const read = this.#api.llama_state_seq_set_data_ext(this.pointer, state, length, sequence, stateFlags[part]);
    return Number(read) === length;
  }

  /** The first and the last position that a sequence knows; −1: none. */
  positions(sequence: number): readonly [first: number, last: number] {
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

export interface NativeEmbeddingContextOptions {
  /** By its number (llama.h, `llama_pooling_type`). */
  readonly poolingType: number;
  /** Tokens that all sequences of a pass have together, with what was read of them before. */
  readonly capacity: number;
  /** Tokens of one pass at most. */
  readonly batchSize: number;
  /** Texts of one pass at most. */
  readonly sequences: number;
  readonly threads: number;
}

/** Where a model reads texts to make one vector of each. */
export class NativeEmbeddingContext {
  readonly batch: NativeBatch;
  readonly batchSize: number;
  readonly sequences: number;
  readonly threads: number;
  readonly #api: LlamaApi;
  readonly #pointer: Pointer;
  /** null: it keeps nothing of what it reads. */
  readonly #memory: Pointer;
  readonly #pass: LlamaApi["llama_decode"];
  readonly #made: CreatedContext;
  readonly #length: number;

  /** Throws an Error with llama.cpp's reason. */
  constructor(model: NativeModel, options: NativeEmbeddingContextOptions) {
    const { api } = model;
    const { poolingType, capacity: room, batchSize, sequences, threads } = options;
    this.#api = api;
    this.batchSize = batchSize;
    this.sequences = sequences;
    this.threads = threads;
    this.#length = model.embeddingLength;
    this.#made = createContext(
      model,
      // What is pooled is what was read in one piece.
      { capacity: room, batchSize, sequences, threads },
      {
        // All tokens of a text that is embedded are outputs.
        n_outputs_max: batchSize,
        pooling_type: poolingType,
        embeddings: true,
        kv_unified: true,
      },
    );
    const { pointer } = this.#made;
    if (api.llama_pooling_type(pointer) !== poolingType) {
      this.#made.free();
      throw new Error("llama.cpp pools in another way than it was asked to");
    }
    this.#pointer = pointer;
    this.#memory = api.llama_get_memory(pointer);
    this.#pass = model.onlyEncodes ? api.llama_encode : api.llama_decode;
    this.batch = new NativeBatch(api.koffi, batchSize);
  }

  free(): void {
    this.#made.free();
    this.batch.free();
  }

  /**
   * Evaluates the batch, in another thread: until it is done, nothing else may be asked of the context but `abort`. false: it was ended
   * early. Rejects with llama.cpp's reason.
   */
  decode(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#pass.async(this.#pointer, this.batch.struct, (error, code) => {
        this.#made.abort.lower();
        if (error) reject(error as Error);
        else if (code === 0 || code === aborted) resolve(code === 0);
        else
          reject(
            new Error(`llama.cpp could not evaluate a batch (${code}): ${this.#api.takeError() ?? "no reason given"}`),
          );
      });
    });
  }

  /** Ends the pass that is under way, on a processor; what a GPU does goes to its end. */
  abort(): void {
    this.#made.abort.raise();
  }

  /** Forgets what it has read. */
  clear(): void {
    if (this.#memory !== null) this.#api.llama_memory_clear(this.#memory, false);
  }

  /** What the last pass made of a sequence: its vector, or with "rank" pooling its score. */
  pooled(sequence: number, count: number = this.#length): Float32Array {
    const at = this.#api.llama_get_embeddings_seq(this.#pointer, sequence);
    if (at === null) throw new Error(`llama.cpp has no embedding of sequence ${sequence}`);
    return this.#api.koffi.decode(at, "float", count) as Float32Array;
  }
}

/** `llama_decode`: the abort callback said so. */
const aborted = 2;
