import type { LlamaApi } from "./llama-api.ts";
import { makeContext, type MadeContext } from "./make-context.ts";
import { NativeBatch } from "./native-batch.ts";
import type { NativeModel } from "./native-model.ts";
import type { Pointer } from "./structs.ts";

export interface NativeEmbeddingContextOptions {
  /** By its number (llama.h, `llama_pooling_type`). */
  readonly poolingType: number;
  /** Tokens that all sequences of a pass have together, with what was read of them before. */
  readonly room: number;
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
  readonly #made: MadeContext;
  readonly #length: number;

  /** Throws an Error with llama.cpp's reason. */
  constructor(model: NativeModel, options: NativeEmbeddingContextOptions) {
    const { api } = model;
    const { poolingType, room, batchSize, sequences, threads } = options;
    this.#api = api;
    this.batchSize = batchSize;
    this.sequences = sequences;
    this.threads = threads;
    this.#length = model.embeddingLength;
    this.#made = makeContext(
      model,
      // What is pooled is what was read in one piece.
      { room, batchSize, sequences, threads },
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
  pass(): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#pass.async(this.#pointer, this.batch.struct, (error, code) => {
        this.#made.abort.lower();
        if (error) reject(error as Error);
        else if (code === 0 || code === aborted) resolve(code === 0);
        else
          reject(
            new Error(
              `llama.cpp could not evaluate a batch (${code}): ${this.#api.takeComplaint() ?? "no reason given"}`,
            ),
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
