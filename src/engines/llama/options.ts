import type { Observe } from "../../core/observe.ts";
import type { Format } from "../../formats/format.ts";
import type { PoolingSetting } from "./file/embedding-plan.ts";
import type { Sampling } from "../../core/request.ts";
import type { CacheType } from "./cache-type.ts";

/** How a local model is opened and run. */
export interface LlamaEngineOptions {
  /** Path of a GGUF file (the first part of a split one), or `hf:owner/repo[:quant]`, which is downloaded. */
  readonly model: string;
  /** The name that clients use; default: the file's name without `.gguf`. */
  readonly name?: string;
  /**
   * Tokens of prompt and answer together, for each slot. Default: what the model was trained on, at most 8192, less where memory is
   * short.
   */
  readonly contextSize?: number;
  /**
   * Sequences that are generated at the same time. Up to four share one memory, of `contextSize` tokens for each where there is room for
   * that; more have one each. Default 4.
   */
  readonly slots?: number;
  /** CPU threads. Default: all processor cores but one; one for models under 64 MiB. */
  readonly threads?: number;
  /** Tokens that are evaluated in one pass at most; default 512. */
  readonly batchSize?: number;
  /** Put layers on a GPU where there is one: "auto" (default), false, or the number of layers. */
  readonly gpu?: "auto" | false | number;
  /** How a model is divided among several GPUs; default: its layers, by the memory that each GPU has free. */
  readonly split?: GpuSplit;
  /**
   * Flash attention. Default "auto": as llama.cpp decides, but not where a small model on a processor is measured to be slower with it.
   */
  readonly flashAttention?: "auto" | boolean;
  /** How keys are kept in memory; default f16. */
  readonly cacheTypeK?: CacheType;
  /** The same of values. A quantized type needs flash attention. */
  readonly cacheTypeV?: CacheType;
  /**
   * What may be kept in main memory beside the slots, in bytes: copies of what idle slots knew before they were given to another
   * conversation, and the checkpoints of models whose memory cannot be cut anywhere. 0: nothing is kept. Default: as much as the slots
   * have, at most 512 MiB; less where memory is short.
   */
  readonly cacheMemory?: number;
  /**
   * A folder where what the model knows of conversations is written at a clean stop, and read from when it is opened again. Its files
   * hold the texts of conversations as tokens. Default: it is forgotten.
   */
  readonly keepCache?: string;
  /** Changes of the model (LoRA) that were trained apart from it; their ids are their places here. */
  readonly adapters?: readonly LoraAdapter[];
  /** Log a line at level `debug` for each transition of a slot or a task. Default false. */
  readonly debug?: boolean;
  /** Jinja source to use in place of the model's own chat template. */
  readonly chatTemplate?: string;
  /** How the model writes calls and reasoning; default: found from the chat template. */
  readonly toolFormat?: Format;
  /** Hold the calls that the model makes by itself to their tools' schemas, also those of tools without `strict`. Default true. */
  readonly constrainCalls?: boolean;
  /**
   * Guess how an answer goes on where its text repeats, and evaluate several tokens at once: where that pays ("auto", the default), never
   * ("off"), or wherever there is a guess, for measurements ("always"). The answer is the same.
   */
  readonly speculation?: "auto" | "off" | "always";
  /**
   * How the model makes one vector of a text's; "rank": it scores a query with a document; "none": it makes no embeddings. Default: as its
   * file says, which most models that generate do not.
   */
  readonly pooling?: PoolingSetting;
  /** How many choices may wait for a slot before requests are refused with 429. Default 64. */
  readonly queueLimit?: number;
  /**
   * A model that has work and makes no progress for so long, in milliseconds, is ended and started again. It must be more than one step
   * takes: 64 tokens of a prompt at least. Default two minutes.
   */
  readonly stepTimeoutMs?: number;
  /** A load that makes no progress for so long, in milliseconds, is given up. Default ten minutes. */
  readonly loadTimeoutMs?: number;
  /** Used where a request does not say. */
  readonly defaults?: {
    readonly sampling?: Sampling;
    readonly maxTokens?: number;
    /** Strings of JSON, where a grammar holds an answer or a call, have at most so many tokens. */
    readonly maxStringTokens?: number;
    /** An answer's thoughts are closed when they are so many tokens long. */
    readonly maxThoughtTokens?: number;
  };
  /** Where `hf:` models are kept; default: node-llama-cpp's folder in the home directory. */
  readonly modelsFolder?: string;
  /** Base URL of the hub that `hf:` names are resolved on; default: node-llama-cpp's. */
  readonly hub?: string;
  /** Called with 0…1 while the model is downloaded, then again from 0 while it is loaded. */
  readonly onProgress?: (progress: OpenProgress) => void;
  /** Aborted while it is being opened: that ends, with `ModelOpenError`. */
  readonly signal?: AbortSignal;
  /** Called with one line for the log: what the library says, restarts, what a request asks for that cannot be had. */
  readonly log?: Observe;
}

export interface LoraAdapter {
  /** A GGUF file. */
  readonly path: string;
  /** How much of it is used where a request does not say; default 1. */
  readonly scale?: number;
}

/** How several GPUs share a model (llama.h, `llama_model_params`). */
export interface GpuSplit {
  /** One GPU has all of it (none), or each has some of its layers, or a part of each layer (row, tensor). */
  readonly mode?: "none" | "layer" | "row" | "tensor";
  /** How much each GPU gets, in proportion: [3, 1]. */
  readonly shares?: readonly number[];
  /** The number of the one that is used alone with `none`. */
  readonly mainGpu?: number;
}

export interface OpenProgress {
  readonly phase: "download" | "load";
  /** 0…1 */
  readonly fraction: number;
}
