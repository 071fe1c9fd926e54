import type { LlamaApi } from "./llama-api.ts";
import type { NativeModel } from "./native-model.ts";
import type { BatchStruct, ContextParams, Koffi, Pointer, ThreadPoolParams } from "./structs.ts";

export interface ContextSizes {
  /** Tokens of all sequences together. */
  readonly capacity: number;
  readonly sequences: number;
  /** Tokens of one batch at most. */
  readonly batchSize: number;
  readonly threads: number;
}

/** A context of llama.cpp with the memory that it needs. */
export interface CreatedContext {
  readonly pointer: Pointer;
  /** Aborts the current decode. */
  readonly abort: AbortFlag;
  free(): void;
}

/**
 * Creates a context with its own threads, whose decodes can be aborted. `params`: other parameters than llama.cpp's defaults. Throws an
 * Error with llama.cpp's reason.
 */
export function createContext(model: NativeModel, sizes: ContextSizes, params: Partial<ContextParams>): CreatedContext {
  const { api } = model;
  const { capacity, sequences, batchSize, threads } = sizes;
  const abort = new AbortFlag(api);
  api.takeError();
  const pointer = api.llama_init_from_model(model.pointer, {
    ...api.llama_context_default_params(),
    n_ctx: capacity,
    n_batch: batchSize,
    n_ubatch: batchSize,
    n_seq_max: sequences,
    n_threads: threads,
    n_threads_batch: threads,
    abort_callback: abort.callback,
    abort_callback_data: abort.data,
    swa_full: false,
    ...params,
  });
  if (pointer === null) {
    abort.free();
    throw new Error(api.takeError() ?? "llama.cpp cannot make a context");
  }
  const freePool = attachThreads(api, pointer, threads);
  return {
    pointer,
    abort,
    free() {
      api.llama_free(pointer);
      freePool();
      abort.free();
    },
  };
}

/** Size of a `ggml_tensor` up to the end of its dimensions, and their offset and number (ggml.h). */
const tensor = { bytes: 64, sizes: 16, dimensions: 4 } as const;

/**
 * Aborts a decode. llama.cpp calls a function to find out whether to abort, in a thread in which JavaScript cannot run. So that function is
 * `ggml_is_empty`, with the dimensions of a tensor that does not exist: it returns `true` as soon as one of them is 0.
 */
export class AbortFlag {
  readonly callback: Pointer;
  readonly data: Pointer;
  readonly #koffi: Koffi;
  readonly #dimensions: BigInt64Array;

  constructor({ koffi, isEmpty }: LlamaApi) {
    this.#koffi = koffi;
    const address = koffi.alloc("uint8_t", tensor.bytes) as bigint;
    this.callback = isEmpty;
    this.data = address;
    this.#dimensions = new BigInt64Array(koffi.view(address + BigInt(tensor.sizes), tensor.dimensions * 8));
    this.lower();
  }

  /** The flag must not be used afterwards. */
  free(): void {
    this.#koffi.free(this.data);
  }

  raise(): void {
    this.#dimensions[0] = 0n;
  }

  lower(): void {
    this.#dimensions.fill(1n);
  }
}

const cpuDevice = 0;
/**
 * Gives a context a pool of threads; without one, llama.cpp creates new threads for each decode. The threads wait for the next decode as
 * long as llama.cpp's server does without sleeping: a thread that must be woken starts late, and where other processes compute, often on
 * the core of the thread that wakes it (135M model, two threads, 1, 4 and 8 streams: 14 to 32 % fewer tokens per second with `poll` 1
 * than with the default 50). Returns a function that frees the pool, which is called after the context is freed.
 */
function attachThreads(api: LlamaApi, context: Pointer, threads: number): () => void {
  const nothing = (): void => {};
  if (threads <= 1) return nothing;
  const { koffi, structs } = api;
  const registry = api.ggml_backend_dev_backend_reg(api.ggml_backend_dev_by_type(cpuDevice));
  const create = api.ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_new");
  const free = api.ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_free");
  if (create === null || free === null) return nothing;
  const newPool = koffi.decode(create, koffi.proto("void *", [koffi.pointer(structs.threadPoolParams)])) as (
    params: ThreadPoolParams,
  ) => Pointer;
  const freePool = koffi.decode(free, koffi.proto("void", ["void *"])) as (pool: Pointer) => void;
  const pool = newPool(api.ggml_threadpool_params_default(threads));
  if (pool === null) return nothing;
  api.llama_attach_threadpool(context, pool, pool);
  return () => freePool(pool);
}

/** A `llama_batch` in llama.cpp's memory: tokens with their sequences and positions, and whether their logits are needed. */
export class NativeBatch {
  readonly struct: BatchStruct;
  readonly #tokens: Int32Array;
  readonly #positions: Int32Array;
  readonly #sequences: Int32Array;
  readonly #outputs: Int8Array;
  readonly #koffi: Koffi;
  readonly #memory: readonly bigint[];
  #length = 0;

  constructor(koffi: Koffi, size: number) {
    this.#koffi = koffi;
    const numbers = (): [bigint, Int32Array] => {
      const address = koffi.alloc("int32_t", size) as bigint;
      return [address, new Int32Array(koffi.view(address, size * 4))];
    };
    const [token, tokens] = numbers();
    const [pos, positions] = numbers();
    const [counts, sequenceCounts] = numbers();
    const [sequence, sequences] = numbers();
    const pointers = koffi.alloc("void *", size) as bigint;
    const outputs = koffi.alloc("int8_t", size) as bigint;
    // Each token has a list of one sequence.
    sequenceCounts.fill(1);
    const lists = new BigUint64Array(koffi.view(pointers, size * 8));
    for (let i = 0; i < size; i++) lists[i] = sequence + BigInt(i * 4);
    this.#memory = [token, pos, counts, sequence, pointers, outputs];
    this.#tokens = tokens;
    this.#positions = positions;
    this.#sequences = sequences;
    this.#outputs = new Int8Array(koffi.view(outputs, size));
    this.struct = { n_tokens: 0, token, embd: null, pos, n_seq_id: counts, seq_id: pointers, logits: outputs };
  }

  /** The batch must not be used afterwards. */
  free(): void {
    for (const address of this.#memory) this.#koffi.free(address);
  }

  get length(): number {
    return this.#length;
  }

  /** Tokens at most. */
  get size(): number {
    return this.#tokens.length;
  }

  clear(): void {
    this.#length = 0;
    this.struct.n_tokens = 0;
  }

  /** Adds a token. Returns its index in the batch. */
  add(token: number, position: number, sequence: number, wantsLogits: boolean): number {
    const at = this.#length++;
    if (at >= this.#tokens.length) throw new RangeError("The batch is full.");
    this.#tokens[at] = token;
    this.#positions[at] = position;
    this.#sequences[at] = sequence;
    this.#outputs[at] = wantsLogits ? 1 : 0;
    this.struct.n_tokens = this.#length;
    return at;
  }
}

/** Rows of an image for one decode. */
export interface BatchRows {
  readonly rows: Float32Array;
  /** Of each row; with M-RoPE of all rows in each of four dimensions. */
  readonly positions: Int32Array;
  readonly sequence: number;
  /** The logits of the last row are needed. */
  readonly wantsLogits: boolean;
  /** The rows attend to later ones, too. */
  readonly nonCausal: boolean;
}

/** A `llama_batch` with rows in place of tokens, all of one sequence. */
export class NativeRowBatch {
  readonly struct: BatchStruct;
  nonCausal = false;
  readonly #rowLength: number;
  readonly #rows: Float32Array;
  readonly #positions: Int32Array;
  readonly #sequence: Int32Array;
  readonly #outputs: Int8Array;
  readonly #free: () => void;

  /** `size`: the most rows; `rowLength`: numbers of a row. */
  constructor(koffi: Koffi, size: number, rowLength: number) {
    const memory = (bytes: number): [bigint, ArrayBuffer] => {
      const address = koffi.alloc("uint8_t", bytes) as bigint;
      return [address, koffi.view(address, bytes)];
    };
    const [embd, rows] = memory(size * rowLength * 4);
    const [pos, positions] = memory(size * 4 * 4);
    const [counts, sequenceCounts] = memory(size * 4);
    const [sequence, sequences] = memory(4);
    const [lists, pointers] = memory(size * 8);
    const [logits, outputs] = memory(size);
    new Int32Array(sequenceCounts).fill(1);
    new BigUint64Array(pointers).fill(sequence);
    this.#rowLength = rowLength;
    this.#rows = new Float32Array(rows);
    this.#positions = new Int32Array(positions);
    this.#sequence = new Int32Array(sequences);
    this.#outputs = new Int8Array(outputs);
    this.struct = { n_tokens: 0, token: null, embd, pos, n_seq_id: counts, seq_id: lists, logits };
    this.#free = () => {
      for (const address of [embd, pos, counts, sequence, lists, logits]) koffi.free(address);
    };
  }

  set({ rows, positions, sequence, wantsLogits, nonCausal }: BatchRows): void {
    const count = rows.length / this.#rowLength;
    this.#rows.set(rows);
    this.#positions.set(positions);
    this.#sequence[0] = sequence;
    this.#outputs.fill(0);
    if (wantsLogits) this.#outputs[count - 1] = 1;
    this.struct.n_tokens = count;
    this.nonCausal = nonCausal;
  }

  /** The batch must not be used afterwards. */
  free(): void {
    this.#free();
  }
}
