import { cacheTypes, defaultCacheType, type KvCacheType } from "../../cache-type.ts";
import type { LlamaApi } from "./llama-api.ts";
import { createContext, NativeBatch, NativeRowBatch, type BatchRows, type CreatedContext } from "./make-context.ts";
import type { NativeModel } from "./native-model.ts";
import type { BatchStruct, Pointer } from "./structs.ts";

export interface NativeContextOptions {
  /** Tokens of all sequences together. */
  readonly capacity: number;
  readonly sequences: number;
  /** Tokens of one batch at most. */
  readonly batchSize: number;
  /** Tokens of one batch whose logits are needed, at most. */
  readonly maxOutputs: number;
  readonly threads: number;
  /**
   * All sequences share the cells of one KV cache: each may use the cells that the others leave, and a common prefix is stored once. It is
   * slower for many sequences without a common prefix, because attention skips the cells of the others.
   */
  readonly unifiedKv: boolean;
  /** "auto": as llama.cpp decides. */
  readonly flashAttention: "auto" | "on" | "off";
  /** The types of keys and values in the cache; default f16. */
  readonly cacheTypeK?: KvCacheType;
  readonly cacheTypeV?: KvCacheType;
  /** Tokens that can be removed from the end of a recurrent model's sequence: it keeps a state for each. Default 0. */
  readonly rollback?: number;
}

/** The state of a sequence: all of it, or the part that cannot be truncated (recurrent states, layers with a sliding window). */
export type StatePart = "all" | "partial";

/** Sequences of a context at most (llama-cparams.h, `LLAMA_MAX_SEQ`). */
const maxSequences = 256;

/** llama.h, `LLAMA_STATE_SEQ_FLAGS_*`. */
const stateFlags = { all: 0, partial: 1 } as const;

/** After `no-free-cells` and `aborted`, none of the batch's tokens are in the KV cache. */
export type DecodeResult = "done" | "no-free-cells" | "aborted";

const flashAttentionType = { auto: -1, off: 0, on: 1 } as const;

/** Views of logits that are cached. */
const maxRows = 1024;

/** A context of llama.cpp: the KV cache of several sequences, and decodes. */
export class NativeContext {
  readonly model: NativeModel;
  readonly batch: NativeBatch;
  /** Tokens of all sequences together, as llama.cpp has rounded it. */
  readonly capacity: number;
  readonly maxOutputs: number;
  /** Tokens of a batch that can be removed from a sequence again: infinite unless the model is recurrent. */
  readonly maxRollback: number;
  readonly unifiedKv: boolean;
  readonly threads: number;
  readonly pointer: Pointer;
  readonly #api: LlamaApi;
  readonly #memory: Pointer;
  readonly #created: CreatedContext;
  /** An empty sequence, which takes parts of others while they are copied; `null` where `splitsStates` is false. */
  readonly #spare: number | null;
  /**
   * Rows of logits by their addresses, which are the same in each decode. V8 counts each new view as new memory, and would collect garbage
   * more often.
   */
  readonly #rows = new Map<bigint, Float32Array>();
  /** Is created with the first image. */
  #rowBatch: NativeRowBatch | undefined;

  /** Throws an Error with llama.cpp's reason. */
  constructor(model: NativeModel, options: NativeContextOptions) {
    const { api } = model;
    const { capacity, sequences, batchSize, threads, unifiedKv, flashAttention } = options;
    const { cacheTypeK = defaultCacheType, cacheTypeV = defaultCacheType, rollback = 0 } = options;
    this.model = model;
    this.unifiedKv = unifiedKv;
    this.threads = threads;
    // Only in one KV cache for all sequences can some cells of one be added to another.
    this.#spare = unifiedKv && !model.needsCheckpoints && sequences < maxSequences ? sequences : null;
    const withSpare = this.#spare === null ? sequences : sequences + 1;
    this.maxOutputs = Math.min(batchSize, Math.max(options.maxOutputs, withSpare));
    this.#created = createContext(
      model,
      { capacity, sequences: withSpare, batchSize, threads },
      {
        n_outputs_max: this.maxOutputs,
        flash_attn_type: flashAttentionType[flashAttention],
        type_k: cacheTypes[cacheTypeK].code,
        type_v: cacheTypes[cacheTypeV].code,
        kv_unified: unifiedKv,
        n_rs_seq: model.isRecurrent ? rollback : 0,
      },
    );
    const { pointer } = this.#created;
    // llama.cpp keeps no states for architectures in which they are not implemented.
    this.maxRollback = model.isRecurrent ? api.llama_n_rs_seq(pointer) : Infinity;
    this.#api = api;
    this.pointer = pointer;
    this.#memory = api.llama_get_memory(pointer);
    this.capacity = api.llama_n_ctx(pointer);
    this.batch = new NativeBatch(api.koffi, batchSize);
  }

  free(): void {
    this.#created.free();
    this.batch.free();
    this.#rowBatch?.free();
  }

  /** The next decode takes rows of an image in place of the batch, which is cleared. */
  setRows(rows: BatchRows): void {
    const { batch, model } = this;
    batch.clear();
    this.#rowBatch ??= new NativeRowBatch(this.#api.koffi, batch.size, model.rowLength);
    this.#rowBatch.set(rows);
    if (rows.nonCausal) this.#api.llama_set_causal_attn(this.pointer, false);
  }

  /** An empty batch: rows are decoded. */
  get #nextBatch(): BatchStruct {
    return this.batch.length === 0 && this.#rowBatch ? this.#rowBatch.struct : this.batch.struct;
  }

  #decoded(): void {
    if (this.batch.length === 0 && this.#rowBatch?.nonCausal === true)
      this.#api.llama_set_causal_attn(this.pointer, true);
  }

  /** Decodes the batch in this thread. Throws an Error with llama.cpp's reason. */
  decode(): DecodeResult {
    const code = this.#api.llama_decode(this.pointer, this.#nextBatch);
    this.#decoded();
    return this.#resultOf(code);
  }

  /** Decodes the batch in another thread. Until that ends, only `abort` may be called. */
  decodeAsync(): Promise<DecodeResult> {
    return new Promise((resolve, reject) => {
      this.#api.llama_decode.async(this.pointer, this.#nextBatch, (error, code) => {
        this.#created.abort.lower();
        this.#decoded();
        try {
          if (error) throw error as Error;
          resolve(this.#resultOf(code));
        } catch (failure) {
          reject(failure as Error);
        }
      });
    });
  }

  /** Aborts the decode in the other thread. Has no effect on a GPU. */
  abort(): void {
    this.#created.abort.raise();
  }

  #resultOf(code: number): DecodeResult {
    if (code === 0) return "done";
    if (code === 1) return "no-free-cells";
    if (code === abortedCode) return "aborted";
    throw decodeError(code, this.#api);
  }

  /**
   * The logits of a token, given by its index in the last batch. They are in llama.cpp's memory, where its samplers read changes. Valid until
   * the next decode.
   */
  logits(index: number): Float32Array {
    const address = this.#api.llama_get_logits_ith(this.pointer, index);
    if (address === null) throw new Error(`There are no logits at ${index}.`);
    let row = this.#rows.get(address);
    if (!row) {
      if (this.#rows.size >= maxRows) this.#rows.clear();
      row = new Float32Array(this.#api.koffi.view(address, this.model.vocabularySize * 4));
      this.#rows.set(address, row);
    }
    return row;
  }

  /** Removes a sequence's tokens from a position on. Returns false, and changes nothing, if the memory cannot be truncated there. */
  truncate(sequence: number, from: number): boolean {
    return this.#api.llama_memory_seq_rm(this.#memory, sequence, from, -1);
  }

  /** Removes all tokens of a sequence. */
  clear(sequence: number): void {
    this.#api.llama_memory_seq_rm(this.#memory, sequence, -1, -1);
  }

  /** Copies a sequence of a unified KV cache to an empty one. Both use the same cells. */
  copy(from: number, to: number): void {
    this.#api.llama_memory_seq_cp(this.#memory, from, to, -1, -1);
  }

  /** The size of a sequence's state in bytes. */
  stateSize(sequence: number, part: StatePart): number {
    return Number(this.#api.llama_state_seq_get_size_ext(this.pointer, sequence, stateFlags[part]));
  }

  /** Copies a sequence's state; `null` if llama.cpp cannot, or if there is no memory for it. */
  readState(sequence: number, part: StatePart): Uint8Array | null {
    const size = this.stateSize(sequence, part);
    const state = allocated(size);
    if (!state) return null;
    const flags = stateFlags[part];
    const written = Number(this.#api.llama_state_seq_get_data_ext(this.pointer, state, size, sequence, flags));
    return size > 0 && written === size ? state : null;
  }

  /** Replaces a sequence's state. Returns false if there are not enough free cells; the sequence is undefined then. */
  writeState(sequence: number, state: Uint8Array, part: StatePart): boolean {
    const { length } = state;
    const read = this.#api.llama_state_seq_set_data_ext(this.pointer, state, length, sequence, stateFlags[part]);
    return Number(read) === length;
  }

  /** Whether `readRange` and `appendState` are possible. */
  get splitsStates(): boolean {
    return this.#spare !== null;
  }

  /** Copies the state of a sequence's positions from `from` to `to`, exclusive; `null` as for `readState`. */
  readRange(sequence: number, from: number, to: number): Uint8Array | null {
    if (this.#spare === null) return null;
    this.#api.llama_memory_seq_cp(this.#memory, sequence, this.#spare, from, to);
    const state = this.readState(this.#spare, "all");
    this.clear(this.#spare);
    return state;
  }

  /** Adds what `readRange` has copied to a sequence. Returns false if there are not enough free cells. */
  appendState(sequence: number, state: Uint8Array): boolean {
    if (this.#spare === null) return false;
    const isWritten = this.writeState(this.#spare, state, "all");
    if (isWritten) this.copy(this.#spare, sequence);
    this.clear(this.#spare);
    return isWritten;
  }

  /** The first and the last position of a sequence; −1 if it is empty. */
  positions(sequence: number): readonly [first: number, last: number] {
    const api = this.#api;
    return [api.llama_memory_seq_pos_min(this.#memory, sequence), api.llama_memory_seq_pos_max(this.#memory, sequence)];
  }
}

/** `null` if the system does not provide the memory. */
function allocated(bytes: number): Buffer | null {
  try {
    // Not from Node's pool, which would keep more memory than the cache counts.
    return Buffer.allocUnsafeSlow(bytes);
  } catch {
    return null;
  }
}

/** The result of `llama_decode` after the abort callback returned true. */
const abortedCode = 2;

function decodeError(code: number, api: LlamaApi): Error {
  return new Error(`llama.cpp could not evaluate a batch (${code}): ${api.takeError() ?? "no reason given"}`);
}

export interface NativeEmbeddingContextOptions {
  /** llama.h, `llama_pooling_type`. */
  readonly poolingType: number;
  /** Tokens of all sequences of a batch, including what was decoded of them before. */
  readonly capacity: number;
  /** Tokens of one batch at most. */
  readonly batchSize: number;
  /** Texts of one batch at most. */
  readonly sequences: number;
  readonly threads: number;
}

/** A context of llama.cpp that computes a vector for each text. */
export class NativeEmbeddingContext {
  readonly batch: NativeBatch;
  readonly batchSize: number;
  readonly sequences: number;
  readonly threads: number;
  readonly #api: LlamaApi;
  readonly #pointer: Pointer;
  /** `null` for a model without a KV cache. */
  readonly #memory: Pointer;
  readonly #decode: LlamaApi["llama_decode"];
  readonly #created: CreatedContext;
  readonly #length: number;

  /** Throws an Error with llama.cpp's reason. */
  constructor(model: NativeModel, options: NativeEmbeddingContextOptions) {
    const { api } = model;
    const { poolingType, capacity, batchSize, sequences, threads } = options;
    this.#api = api;
    this.batchSize = batchSize;
    this.sequences = sequences;
    this.threads = threads;
    this.#length = model.embeddingLength;
    this.#created = createContext(
      model,
      { capacity, batchSize, sequences, threads },
      {
        // Pooling needs the output of every token.
        n_outputs_max: batchSize,
        pooling_type: poolingType,
        embeddings: true,
        kv_unified: true,
      },
    );
    const { pointer } = this.#created;
    if (api.llama_pooling_type(pointer) !== poolingType) {
      this.#created.free();
      throw new Error("llama.cpp pools in another way than it was asked to");
    }
    this.#pointer = pointer;
    this.#memory = api.llama_get_memory(pointer);
    this.#decode = model.onlyEncodes ? api.llama_encode : api.llama_decode;
    this.batch = new NativeBatch(api.koffi, batchSize);
  }

  free(): void {
    this.#created.free();
    this.batch.free();
  }

  /**
   * Decodes the batch in another thread. Until that ends, only `abort` may be called. Resolves with false if it was aborted. Rejects with
   * llama.cpp's reason.
   */
  decode(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#decode.async(this.#pointer, this.batch.struct, (error, code) => {
        this.#created.abort.lower();
        if (error) reject(error as Error);
        else if (code === 0 || code === abortedCode) resolve(code === 0);
        else reject(decodeError(code, this.#api));
      });
    });
  }

  /** Aborts the current decode. Has no effect on a GPU. */
  abort(): void {
    this.#created.abort.raise();
  }

  /** Removes all tokens. */
  clear(): void {
    if (this.#memory !== null) this.#api.llama_memory_clear(this.#memory, false);
  }

  /** The vector of a sequence after the last decode; with "rank" pooling its score. */
  pooled(sequence: number, count: number = this.#length): Float32Array {
    const address = this.#api.llama_get_embeddings_seq(this.#pointer, sequence);
    if (address === null) throw new Error(`llama.cpp has no embedding of sequence ${sequence}`);
    return this.#api.koffi.decode(address, "float", count) as Float32Array;
  }
}
