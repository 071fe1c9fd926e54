import type { NativeModel } from "./native-model.ts";
import type { ContextParams, Pointer, ThreadPoolParams, Batch, Koffi } from "./structs.ts";
import type { LlamaApi } from "./llama-api.ts";

export interface ContextSizes {
  /** Tokens that all sequences hold together. */
  readonly capacity: number;
  readonly sequences: number;
  /** Tokens of one pass at most. */
  readonly batchSize: number;
  readonly threads: number;
}

/** A context as llama.cpp made it, with what it needs for as long as it lives. */
export interface CreatedContext {
  readonly pointer: Pointer;
  /** Ends the pass that is under way. */
  readonly abort: AbortFlag;
  free(): void;
}

/**
 * Makes one with threads of its own, whose passes can be ended early. `more`: what else is not llama.cpp's default. Throws an Error with
 * llama.cpp's reason.
 */
export function createContext(model: NativeModel, sizes: ContextSizes, more: Partial<ContextParams>): CreatedContext {
  const { api } = model;
  const { capacity: room, sequences, batchSize, threads } = sizes;
  const abort = new AbortFlag(api);
  api.takeError();
  const pointer = api.llama_init_from_model(model.pointer, {
    ...api.llama_context_default_params(),
    n_ctx: room,
    n_batch: batchSize,
    n_ubatch: batchSize,
    n_seq_max: sequences,
    n_threads: threads,
    n_threads_batch: threads,
    abort_callback: abort.callback,
    abort_callback_data: abort.data,
    swa_full: false,
    ...more,
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

/** Bytes of a `ggml_tensor` up to the end of its sizes, and where those begin (ggml.h). */
const tensor = { bytes: 64, sizes: 16, dimensions: 4 } as const;

/**
 * Ends a pass that is under way. llama.cpp asks a function whether to go on, in the thread that computes, where no JavaScript can run.
 * So it is given one of its own, `ggml_is_empty`, with the sizes of a tensor that is not there: it says `true` as soon as one of them
 * is 0.
 */
export class AbortFlag {
  readonly callback: Pointer;
  readonly data: Pointer;
  readonly #koffi: LlamaApi["koffi"];
  readonly #sizes: BigInt64Array;

  constructor({ koffi, isEmpty }: LlamaApi) {
    this.#koffi = koffi;
    const at = koffi.alloc("uint8_t", tensor.bytes) as bigint;
    this.callback = isEmpty;
    this.data = at;
    this.#sizes = new BigInt64Array(koffi.view(at + BigInt(tensor.sizes), tensor.dimensions * 8));
    this.lower();
  }

  /** Nothing may be done with it afterwards. */
  free(): void {
    this.#koffi.free(this.data);
  }

  raise(): void {
    this.#sizes[0] = 0n;
  }

  lower(): void {
    this.#sizes.fill(1n);
  }
}

const cpuDevice = 0;
/**
 * How long threads wait for the next pass awake, of 100: passes follow each other within a millisecond, and a thread that never sleeps
 * takes its core from everything else.
 */
const poll = 1;

/**
 * Gives a context threads of its own, for as long as it lives: llama.cpp makes new ones for each pass where it is given none. Returns what
 * frees them, once the context is freed.
 */
export function attachThreads(api: LlamaApi, context: Pointer, threads: number): () => void {
  const none = (): void => {};
  if (threads <= 1) return none;
  const { koffi, structs } = api;
  const registry = api.ggml_backend_dev_backend_reg(api.ggml_backend_dev_by_type(cpuDevice));
  const make = api.ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_new");
  const free = api.ggml_backend_reg_get_proc_address(registry, "ggml_threadpool_free");
  if (make === null || free === null) return none;
  const newPool = koffi.decode(make, koffi.proto("void *", [koffi.pointer(structs.threadPoolParams)])) as (
    params: ThreadPoolParams,
  ) => Pointer;
  const freePool = koffi.decode(free, koffi.proto("void", ["void *"])) as (pool: Pointer) => void;
  const pool = newPool({ ...api.ggml_threadpool_params_default(threads), poll });
  if (pool === null) return none;
  api.llama_attach_threadpool(context, pool, pool);
  return () => freePool(pool);
}

/** The tokens of one pass, in llama.cpp's memory: each with its sequence, its place there, and whether its logits are wanted. */
export class NativeBatch {
  readonly struct: Batch;
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
      const at = koffi.alloc("int32_t", size) as bigint;
      return [at, new Int32Array(koffi.view(at, size * 4))];
    };
    const [token, tokens] = numbers();
    const [pos, positions] = numbers();
    const [counts, sequenceCounts] = numbers();
    const [sequence, sequences] = numbers();
    const pointers = koffi.alloc("void *", size) as bigint;
    const outputs = koffi.alloc("int8_t", size) as bigint;
    // Each token belongs to one sequence, whose number stands in a list of its own.
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

  /** Nothing may be done with it afterwards. */
  free(): void {
    for (const at of this.#memory) this.#koffi.free(at);
  }

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
    this.struct.n_tokens = 0;
  }

  /** The token's index in the batch. */
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
