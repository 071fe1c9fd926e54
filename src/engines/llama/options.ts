import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { Format } from "../../text/formats/format.ts";
import type { PoolingSetting } from "./file/embedding-plan.ts";
import type { Sampling } from "../../wire/core/request.ts";
import type { JobOrigin } from "../lifecycle/limited-jobs.ts";
import type { KvCacheType } from "./cache-type.ts";

/**
 * The settings of a local model, with the names and the values of the configuration, in milliseconds and bytes. They are handed to the model's
 * process as they are.
 */
export interface LlamaSettings {
  /** Path of a GGUF file (the first part of a split one), or `hf:owner/repo[:quant]`, which is downloaded. */
  readonly model: string;
  /**
   * Context size of each slot in tokens, for prompt and answer. Default: the size that the model was trained for, at most 8192, and less
   * if memory is short.
   */
  readonly contextSize?: number;
  /**
   * Number of sequences that are generated at the same time, each with a KV cache of `contextSize` tokens. Up to four share a unified one
   * where memory is short, on a GPU, and with models whose memory cannot be truncated anywhere. Default 4.
   */
  readonly slots?: number;
  /** CPU threads. Default: all cores except one; one for models under 64 MiB. */
  readonly threads?: number;
  /** Maximum number of tokens in a batch. Default 512. */
  readonly batchSize?: number;
  /**
   * How long the processing of a prompt may delay the next token of running answers, in milliseconds. Prompts are processed in chunks of
   * up to this duration, but not in chunks so small that their tokens cost much more. Default 250.
   */
  readonly maxTokenGap?: number;
  /** Put layers on a GPU where there is one: "auto" (default), "off", or the number of layers. */
  readonly gpu?: "auto" | "off" | number;
  /** How several GPUs share a model: one GPU holds it (none), each holds some layers (default), or each a part of every layer (row, tensor). */
  readonly splitMode?: "none" | "layer" | "row" | "tensor";
  /** The proportions of the GPUs: [3, 1]. Default: by the memory that each has free. */
  readonly tensorSplit?: readonly number[];
  /** The number of the GPU that is used with `splitMode: "none"`. */
  readonly mainGpu?: number;
  /**
   * Flash attention. Default "auto": as llama.cpp decides, but not where a small model on a processor is measured to be slower with it.
   */
  readonly flashAttention?: "auto" | "on" | "off";
  /** How keys are kept in memory; default f16. */
  readonly cacheTypeK?: KvCacheType;
  /** The same of values. A quantized type needs flash attention. */
  readonly cacheTypeV?: KvCacheType;
  /**
   * Maximum size of the prompt cache in main memory, in bytes: states of slots that were given to another conversation, and the
   * checkpoints of models whose state cannot be truncated. 0 turns it off. Default: the size of the slots' caches, at most 512 MiB, and
   * less if memory is short.
   */
  readonly cacheMemory?: number;
  /**
   * Folder for the persisted prompt cache, which is written at a clean stop and read when the model is opened. Its files contain
   * conversations as tokens. Default: the prompt cache is not persisted.
   */
  readonly keepCache?: string;
  /** LoRA adapters; their ids are their indexes. */
  readonly adapters?: readonly LoraAdapter[];
  /**
   * The model's projector, a GGUF file with which it takes images; `off`: none. Default: the one next to the model's file, if libmtmd is
   * installed.
   */
  readonly mmproj?: string;
  /**
   * A folder with the libraries of llama.cpp v0.5.0, a build or a release, in place of node-llama-cpp's. Images need its libmtmd, or the
   * package `@fugood/llama.node`.
   */
  readonly llamaLibraries?: string;
  /** Log a line at level `debug` for each transition of a slot or a task. Default false. */
  readonly debug?: boolean;
  /** Jinja source that replaces the model's own chat template. */
  readonly chatTemplate?: string;
  /** How the model writes calls and reasoning. Default: found from the chat template. */
  readonly toolFormat?: Format;
  /** Constrain calls to the schemas of their tools, also for tools without `strict` and without a forced call. Default true. */
  readonly constrainCalls?: boolean;
  /**
   * Speculative decoding, which drafts tokens where the text repeats: if it is faster ("auto", the default), never ("off"), or for every
   * draft, for measurements ("always"). Answers do not change.
   */
  readonly speculation?: "auto" | "off" | "always";
  /** End answers that repeat the same text over and over, with reason "length". Default "on". */
  readonly loopGuard?: "on" | "off";
  /** A smaller model, which drafts how the answers continue. It is used where `speculation` allows, and does not change answers. */
  readonly draft?: DraftOptions;
  /**
   * Pooling of embeddings; "rank": a reranker; "none": no embeddings. Default: the pooling type in the model's file, which most models that
   * generate do not have.
   */
  readonly pooling?: PoolingSetting;
  /** How many choices may wait for a slot before requests are rejected with 429. Default 64. */
  readonly queueLimit?: number;
  /**
   * A model that has work and makes no progress for this time, in milliseconds, is restarted. It must be longer than a decode step: 64
   * tokens of a prompt at least. Default two minutes.
   */
  readonly stepTimeout?: number;
  /** A load that makes no progress for this time, in milliseconds, fails. Default ten minutes. */
  readonly loadTimeout?: number;
  /** Defaults for requests. */
  readonly defaults?: Sampling & {
    readonly maxTokens?: number;
    /** Maximum length, in tokens, of a JSON string in an answer or call that a grammar constrains. */
    readonly maxStringTokens?: number;
    /** Maximum length of an answer's reasoning in tokens, after which it is closed. */
    readonly maxReasoningTokens?: number;
  };
  /** Folder for `hf:` models. Default: node-llama-cpp's folder in the home directory. */
  readonly modelsFolder?: string;
  /** Base URL of the hub for `hf:` names. Default: node-llama-cpp's. */
  readonly hub?: string;
}

/** How a local model is opened and run. */
export interface LlamaEngineOptions extends LlamaSettings {
  /** The name that clients use; default: the file's name without `.gguf`. */
  readonly name?: string;
  /**
   * Reads an image that is not a PNG, JPEG, GIF or BMP file in a data URL: downloads it, or converts it. Resolves with a data URL; rejects
   * with an Error with a reason. `origin`: of the request. Default: such images are refused.
   */
  readonly readImage?: (url: string, origin: JobOrigin) => Promise<string>;
  /** Called while the model is downloaded, then while it is loaded. */
  readonly onProgress?: (progress: OpenProgress) => void;
  /** Aborts the opening, which rejects with `ModelOpenError`. */
  readonly signal?: AbortSignal;
  /** Called with a log line: messages of llama.cpp, restarts, warnings about requests. */
  readonly log?: LogListener;
}

export interface DraftOptions {
  /** Path of a GGUF file, or `hf:owner/repo[:quant]`. */
  readonly path: string;
  /** Tokens of a draft at most. Default 8. */
  readonly maxTokens?: number;
}

export interface LoraAdapter {
  /** A GGUF file. */
  readonly path: string;
  /** Default scale for requests. Default 1. */
  readonly scale?: number;
}

export interface OpenProgress {
  readonly phase: "download" | "load";
  /** 0…1 */
  readonly fraction: number;
}
