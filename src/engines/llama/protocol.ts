import type { Format } from "../../formats/format.ts";
import type { CacheMiss } from "../../core/cache-miss.ts";
import type { ModelInfo, SlotState, TextToTokenize } from "../../core/engine.ts";
import type { GenerationEvent, GenerationFailure } from "../../core/events.ts";
import type { InspectedPrompt } from "../../core/inspection.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { CacheType } from "./cache-type.ts";
import type { PoolingSetting } from "./file/embedding-plan.ts";
import type { ModelOpenReason } from "./model-open-error.ts";
import type { GpuSplit, LlamaEngineOptions, LoraAdapter, OpenProgress } from "./options.ts";

/**
 * The messages between the server's process and the model's process: JSON over Node's channel between parent and child.
 * The model's process does all the work. A separate thread prepares requests (templates, grammars), so that neither the server's streams
 * nor the model's steps wait for it. Tokens, sampling and the reading of the text (stop strings, calls, reasoning) stay with the model, so
 * that the end of an answer is known in the step that brings it.
 */
export type ToModel =
  | OpenMessage
  /** A piece of a long `asked`; the message of the same id with the last one follows, or a "cancel". */
  | { readonly type: "piece"; readonly id: number; readonly text: string }
  | GenerateMessage
  | { readonly type: "look-up"; readonly id: number; readonly question: Question }
  | { readonly type: "cancel"; readonly id: number }
  /** The reader of this request has taken so many further tokens: its sequences may run on. */
  | { readonly type: "taken"; readonly id: number; readonly tokens: number }
  /** The model is closed: what is to outlast its process is written, then comes a "left". */
  | { readonly type: "leave" }
  /** Asks for a sign of life: a pong. */
  | { readonly type: "ping" };

export type FromModel =
  | { readonly type: "progress"; readonly progress: OpenProgress }
  | { readonly type: "ready"; readonly opened: OpenedModel }
  | { readonly type: "failed"; readonly reason: ModelOpenReason; readonly message: string }
  | { readonly type: "left" }
  | { readonly type: "log"; readonly line: string; readonly level: "debug" | "info" | "warn" }
  /** `turn`: the number of the turn that the model is at; null: it waits for work. */
  | { readonly type: "pong"; readonly turn: number | null }
  /** A request's prompt is not in the cache, as much of it could be; comes before the request's first events. */
  | { readonly type: "cache-missed"; readonly id: number; readonly miss: CacheMiss }
  | { readonly type: "looked-up"; readonly id: number; readonly answer: Answer }
  /** The prompts of a request that somebody wants to see. */
  | { readonly type: "prompts"; readonly id: number; readonly prompts: readonly InspectedPrompt[] }
  | StepMessage;

/** What the server asks of a model beside generations. */
export type Question =
  | { readonly about: "slots" }
  | { readonly about: "bytes"; readonly tokens: readonly number[] }
  /** `asked`: an `AskedOfModel` as JSON text, or what is left of it after its pieces. */
  | {
      readonly about: "tokens";
      readonly owner?: string;
      readonly asked: string;
      readonly wants: "count" | "ids" | "bytes";
    }
  /** Its prompt, a conversation, as the model's template writes it. */
  | { readonly about: "prompt"; readonly owner?: string; readonly asked: string }
  /** The vectors of its prompts, cut to `dimensions`. */
  | { readonly about: "embeddings"; readonly owner?: string; readonly asked: string; readonly dimensions?: number }
  /** The scores of its prompts but the first, which is the query; `raw`: as the model computes them. */
  | { readonly about: "scores"; readonly owner?: string; readonly asked: string; readonly raw: boolean };

export type Answer =
  | { readonly about: "slots"; readonly slots: readonly SlotState[] }
  /** As base64: characters may begin in the tokens of one question and end in those of the next. */
  | { readonly about: "bytes"; readonly bytes: string }
  /** Some of the tokens; more come, or their number. */
  | SomeTokens
  | { readonly about: "tokens"; readonly count: number }
  | { readonly about: "prompt"; readonly text: string }
  /** Each as base64 of little-endian 32-bit numbers: as JSON it would take four times the time. */
  | { readonly about: "embeddings"; readonly vectors: readonly string[]; readonly promptTokens: number }
  | { readonly about: "scores"; readonly scores: readonly number[]; readonly promptTokens: number }
  | { readonly about: "failure"; readonly failure: GenerationFailure };

export interface SomeTokens {
  readonly about: "some-tokens";
  readonly tokens: readonly number[];
  /** The bytes of each, where they are wanted. */
  readonly bytes?: readonly (readonly number[])[];
}

/** So many tokens are in one message at most: what takes longer to write and to read holds up other answers. */
export const mostTokensTold = 4096;

export interface OpenMessage {
  readonly type: "open";
  /** A file, or an `hf:` name. */
  readonly model: string;
  /** null: as large as the model was trained for, at most 8192, and as fits in memory. */
  readonly contextSize: number | null;
  readonly slots: number;
  /** null: as fits the machine and the model. */
  readonly threads: number | null;
  readonly batchSize: number;
  readonly gpu: "auto" | false | number;
  readonly split?: GpuSplit;
  readonly flashAttention: "auto" | boolean;
  readonly cacheTypeK: CacheType;
  readonly cacheTypeV: CacheType;
  /** In bytes; absent: as fits the model and the machine. */
  readonly cacheMemory?: number;
  /** A folder that outlasts the process, and under which name its own is kept there. */
  readonly keepCache?: { readonly folder: string; readonly name: string };
  readonly adapters?: readonly LoraAdapter[];
  readonly queueLimit: number;
  readonly modelsFolder?: string;
  readonly hub?: string;
  readonly chatTemplate?: string;
  readonly toolFormat?: Format;
  readonly defaults?: LlamaEngineOptions["defaults"];
  readonly constrainCalls?: boolean;
  readonly speculation: NonNullable<LlamaEngineOptions["speculation"]>;
  readonly pooling?: PoolingSetting;
  /** Log a line at level `debug` for each transition of a slot or a task. */
  readonly debug?: true;
}

/** What the server needs to know of an open model. */
export interface OpenedModel {
  /** The file that was loaded. */
  readonly path: string;
  readonly contextSize: number;
  /** What it can be asked. A conversation needs a chat template, the model's own or a configured one. */
  readonly endpoints: ModelInfo["endpoints"];
}

/** A request, on its way to the model. */
export interface GenerateMessage {
  readonly type: "generate";
  readonly id: number;
  /** The server's id for the request, which lines for the log begin with. */
  readonly requestId: string;
  /** Whose request it is; owners take turns. */
  readonly owner?: string;
  /**
   * An `AskedOfModel` as JSON text, or what is left of it after its pieces; the model's main thread passes it to the preparing thread
   * unread.
   */
  readonly asked: string;
}

/** What a model is told of a request. */
export type AskedOfModel = Pick<
  GenerationRequest,
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
  /** The prompt is only to be made tokens of, in this way, and may be empty. */
  readonly tokenizing?: Pick<TextToTokenize, "addSpecial" | "parseSpecial">;
  /** Somebody wants to see the prompt as the model reads it, and what the model writes. */
  readonly inspected?: true;
};

/** What the model wrote for a choice, control tokens included. */
export type WrittenText = readonly [choice: number, text: string];

/** What one step brought, for all sequences together. */
export interface StepMessage {
  readonly type: "step";
  /** Request id, tokens that it made, its events, and what its choices wrote where somebody wants to see that. */
  readonly results: readonly (readonly [
    id: number,
    tokens: number,
    events: readonly GenerationEvent[],
    written?: readonly WrittenText[],
  ])[];
  readonly state: ModelState;
}

export interface ModelState {
  readonly busy: number;
  readonly queued: number;
  readonly counters: Partial<StepCounters>;
}

/** Running totals since the process started; of a model that only makes embeddings, those that it has. */
export interface StepCounters {
  /** Passes through the scheduler's loop in which at least one sequence advanced. */
  readonly decodeSteps: number;
  /** Tokens that were sampled, for all sequences. */
  readonly generatedTokens: number;
  /** Prompt tokens that were evaluated, and that were found in a slot's cache. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Tokens that were guessed and evaluated before they were drawn, and how many of them were right. */
  readonly draftedTokens: number;
  readonly acceptedTokens: number;
  /** Grammars that were made from tools and schemas. A request that asks for the same as an earlier one needs no new one. */
  readonly grammarsMade: number;
  /** Searches of the whole vocabulary for tokens that a grammar would accept but that must not appear. */
  readonly vocabularyScans: number;
  /** Passes of the model that made embeddings or scores, and the tokens that were read for them. */
  readonly embeddingPasses: number;
  readonly embeddedTokens: number;
}
