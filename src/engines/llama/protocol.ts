import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type { ModelInfo, SlotState, TextToTokenize } from "../../wire/core/engine.ts";
import type { GenerationEvent, GenerationFailure, Usage } from "../../wire/core/events.ts";
import type { InspectedPrompt } from "../../wire/core/inspection.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { ModelOpenReason } from "./model-open-error.ts";
import type { LlamaSettings, OpenProgress } from "./options.ts";
import type { TakenMedia } from "../../wire/core/unreadable-part.ts";

/**
 * The messages between the server's process and the model's process: JSON over Node's IPC channel. The model's process does all the work.
 * A thread in it prepares requests (templates, grammars), so that neither the server's streams nor the decode steps wait for that.
 * Sampling and parsing (stop strings, calls, reasoning) are in its main thread, so that the end of an answer is known in the same step.
 */
export type ToModel =
  | OpenModelMessage
  /** A chunk of a long `asked`. A message of the same id with the last chunk follows, or a "cancel". */
  | { readonly type: "piece"; readonly id: number; readonly text: string }
  | GenerateTaskMessage
  | { readonly type: "look-up"; readonly id: number; readonly question: ModelQuestion }
  | { readonly type: "cancel"; readonly id: number }
  /** The reader of this request has taken `tokens` more tokens: its sequences may continue. */
  | { readonly type: "taken"; readonly id: number; readonly tokens: number }
  /** The model is closed: the process persists the prompt cache, then sends "left". */
  | { readonly type: "leave" }
  /** Requests a "pong". */
  | { readonly type: "ping" };

export type FromModel =
  | { readonly type: "progress"; readonly progress: OpenProgress }
  /** The model is about to be loaded, for a GPU. */
  | { readonly type: "uses-gpu" }
  | { readonly type: "ready"; readonly opened: OpenedModel }
  | { readonly type: "failed"; readonly reason: ModelOpenReason; readonly message: string }
  | { readonly type: "left" }
  | { readonly type: "log"; readonly line: string; readonly level: "debug" | "info" | "warn" }
  /** `turn`: number of the current turn of the scheduler; null if it has no work. */
  | { readonly type: "pong"; readonly turn: number | null }
  /** Much of a request's prompt could be in the cache and is not. Sent before the request's first events. */
  | { readonly type: "cache-missed"; readonly id: number; readonly miss: CacheMiss }
  | { readonly type: "looked-up"; readonly id: number; readonly answer: ModelAnswer }
  /** The prompts of a request that is inspected. */
  | { readonly type: "prompts"; readonly id: number; readonly prompts: readonly InspectedPrompt[] }
  | StepMessage;

/** Questions to a model other than generations. */
export type ModelQuestion =
  | { readonly about: "slots" }
  | { readonly about: "end-reasoning"; readonly requestId: string }
  | { readonly about: "usage"; readonly requestId: string }
  | { readonly about: "bytes"; readonly tokens: readonly number[] }
  /** `asked`: an `AskedOfModel` as JSON, or its last chunk. */
  | {
      readonly about: "tokens";
      readonly owner?: string;
      readonly asked: string;
      readonly wants: "count" | "ids" | "bytes";
    }
  /** The prompt of a conversation, rendered by the chat template. */
  | { readonly about: "prompt"; readonly owner?: string; readonly asked: string }
  /** The embeddings of the prompts, truncated to `dimensions`. */
  | { readonly about: "embeddings"; readonly owner?: string; readonly asked: string; readonly dimensions?: number }
  /** The scores of the prompts after the first one, which is the query; `raw`: without normalization. */
  | { readonly about: "scores"; readonly owner?: string; readonly asked: string; readonly raw: boolean };

export type ModelAnswer =
  | { readonly about: "end-reasoning"; readonly wasReasoning: boolean }
  | { readonly about: "usage"; readonly usage: Usage | null }
  | { readonly about: "slots"; readonly slots: readonly SlotState[] }
  /** Base64: a character may begin in the tokens of one question and end in those of the next. */
  | { readonly about: "bytes"; readonly bytes: string }
  /** Some of the tokens; more tokens or their number follow. */
  | TokensChunk
  | { readonly about: "tokens"; readonly count: number }
  | { readonly about: "prompt"; readonly text: string }
  /** Base64 of little-endian 32-bit floats; JSON numbers would take four times as long. */
  | { readonly about: "embeddings"; readonly vectors: readonly string[]; readonly promptTokens: number }
  | { readonly about: "scores"; readonly scores: readonly number[]; readonly promptTokens: number }
  | { readonly about: "failure"; readonly failure: GenerationFailure };

export interface TokensChunk {
  readonly about: "some-tokens";
  readonly tokens: readonly number[];
  /** The bytes of each token, if requested. */
  readonly bytes?: readonly (readonly number[])[];
}

/** Maximum number of tokens in a message, since to write and read a longer one delays other answers. */
export const maxTokensPerMessage = 4096;

/** The settings of the model, with their defaults, and what this process knows of them. */
export interface OpenModelMessage
  extends Omit<LlamaSettings, DefaultedSetting>, Required<Pick<LlamaSettings, DefaultedSetting>> {
  readonly type: "open";
  /** The model's name in the folder of the persisted prompt cache. */
  readonly name: string;
  /** Longest time in milliseconds that a batch with a part of a prompt may take. */
  readonly maxBatchMs: number;
  /** Why no GPU is used, where `gpu` does not say it. */
  readonly noGpu?: string;
}

type DefaultedSetting =
  | "slots"
  | "batchSize"
  | "maxTokenGap"
  | "gpu"
  | "cacheTypeK"
  | "cacheTypeV"
  | "queueLimit"
  | "speculation";

/** Where a model computes. */
export interface ModelDevice {
  readonly gpu: boolean;
  /** In words, with the reason if it is not, or not whole, on a GPU. */
  readonly text: string;
}

/** An open model, for the server. */
export interface OpenedModel {
  readonly device: ModelDevice;
  /** The file that was loaded. */
  readonly path: string;
  readonly contextSize: number;
  /** The supported endpoints. "chat" needs a chat template, the model's own or a configured one. */
  readonly endpoints: ModelInfo["endpoints"];
  /** What its projector encodes. */
  readonly takes: TakenMedia;
}

/** A request to generate. */
export interface GenerateTaskMessage {
  readonly type: "generate";
  readonly id: number;
  /** The server's id for the request, for log lines. */
  readonly requestId: string;
  /** The owner of the request; owners take turns. */
  readonly owner?: string;
  /**
   * An `AskedOfModel` as JSON, or its last chunk. Only the preparing thread parses it.
   */
  readonly requestJson: string;
}

/** The members of a request that the model's process needs. */
export type ModelRequest = Pick<
  GenerationRequest,
  | "tier"
  | "prompt"
  | "n"
  | "sampling"
  | "limits"
  | "logprobs"
  | "tools"
  | "toolChoice"
  | "parallelToolCalls"
  | "output"
  | "reasoning"
  | "prediction"
  | "wantsRunningUsage"
  | "wantsProgress"
  | "wantsTokenIds"
  | "promptLogprobs"
> & {
  /** The prompt is only tokenized, with these options, and may be empty. */
  readonly tokenizing?: Pick<TextToTokenize, "addSpecial" | "parseSpecial">;
  /** The request is inspected: the tokens of its prompt and the raw text of its answer are reported. */
  readonly inspected?: true;
};

/** The raw text of a choice, including control tokens. */
export type RawText = readonly [choice: number, text: string];

/** The results of one decode step, for all sequences. */
export interface StepMessage {
  readonly type: "step";
  /** Request id, number of generated tokens, events, and the raw text of an inspected request. */
  readonly results: readonly (readonly [
    id: number,
    tokens: number,
    events: readonly GenerationEvent[],
    written?: readonly RawText[],
  ])[];
  readonly state: SchedulerState;
}

export interface SchedulerState {
  readonly busy: number;
  readonly queued: number;
  readonly counters: Partial<StepCounters>;
}

/** Totals since the process started, except the size of the prompt cache. A model for embeddings only has some of them. */
export interface StepCounters {
  /** Turns of the scheduler in which at least one sequence advanced. */
  readonly decodeSteps: number;
  /** Sampled tokens. */
  readonly generatedTokens: number;
  /** Prompt tokens that were evaluated, and those that were in the cache. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Drafted tokens (speculative decoding), and those that were accepted. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  /** Bytes of the prompt cache now, in main memory. */
  readonly promptCacheBytes: number;
  /** Grammars that were made from tools and schemas. Equal requests share a grammar. */
  readonly grammarsMade: number;
  /** Scans of the whole vocabulary for tokens that a grammar accepts but that must not appear. */
  readonly vocabularyScans: number;
  /** Batches for embeddings or scores, and their tokens. */
  readonly embeddingPasses: number;
  readonly embeddedTokens: number;
}
