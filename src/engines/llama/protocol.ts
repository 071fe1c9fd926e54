import type { Format } from "../../formats/format.ts";
import type { GenerationEvent } from "../../generation/event.ts";
import type { Tool } from "../../generation/message.ts";
import type { Limits, Sampling } from "../../generation/request.ts";
import type { ConstraintPlan } from "./constraint-plan.ts";
import type { ModelOpenReason } from "./model-open-error.ts";
import type { OpenProgress } from "./options.ts";

/**
 * What the server's process and the model's process tell each other, as JSON messages over Node's channel between parent and child.
 * The server renders templates; tokens, sampling, and the reading of the text (stop strings, calls, reasoning) happen beside the model,
 * so that what ends an answer is known in the step that brings it.
 */
export type ToModel =
  | OpenMessage
  | GenerateMessage
  | { readonly type: "cancel"; readonly id: number }
  /** The reader of this request has taken so many further tokens: its sequences may run on. */
  | { readonly type: "taken"; readonly id: number; readonly tokens: number };

export type FromModel =
  | { readonly type: "progress"; readonly progress: OpenProgress }
  | { readonly type: "ready"; readonly facts: ModelFacts }
  | { readonly type: "failed"; readonly reason: ModelOpenReason; readonly message: string }
  | { readonly type: "log"; readonly line: string; readonly level: "info" | "warn" }
  | StepMessage;

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
  readonly queueLimit: number;
  readonly modelsFolder?: string;
  readonly hub?: string;
}

/** What the server needs to know of an open model. */
export interface ModelFacts {
  /** The file that was loaded. */
  readonly path: string;
  readonly architecture: string;
  readonly contextSize: number;
  readonly chatTemplate: string | null;
  readonly bosToken: string | null;
  readonly eosToken: string | null;
  /** Texts of the control tokens, which a client's text must not become. */
  readonly specialTokens: readonly string[];
  /** Texts of the user-defined tokens, which the tokenizer makes of plain text, too. */
  readonly markupTokens: readonly string[];
  readonly vocabularySize: number;
  /** No token stands for more UTF-16 units of text than this. */
  readonly longestToken: number;
  /** It has tokens for a prompt with a suffix. */
  readonly fillsInMiddle: boolean;
}

export interface GenerateMessage {
  readonly type: "generate";
  readonly id: number;
  /** The server's id for the request, which lines for the log begin with. */
  readonly requestId: string;
  readonly prompts: readonly PromptInput[];
  /** Choices that are returned, and that are generated, per prompt. */
  readonly n: number;
  readonly bestOf: number;
  readonly reading: AnswerReading;
  readonly sampling: Sampling;
  readonly limits: Limits;
  readonly logprobs?: { readonly top: number };
  /** Give the prompt back in front of the answer. */
  readonly echo: boolean;
  readonly constraint?: ConstraintPlan;
  /** The parameter that a too long prompt came in. */
  readonly promptParam: "messages" | "prompt";
}

export type PromptInput =
  | {
      readonly type: "spans";
      readonly spans: readonly { readonly text: string; readonly special: boolean }[];
      /** The template wrote the BOS, so the prompt needs one. */
      readonly bos: boolean;
      /** Fill in the middle: what comes after the answer. */
      readonly suffix?: string;
    }
  | { readonly type: "tokens"; readonly tokens: readonly number[] };

/** How the answer's text is read. */
export interface AnswerReading {
  readonly format: Format;
  /** The end of the prompt, which may have begun a thought. */
  readonly prefix: string;
  readonly tools?: readonly Tool[];
  readonly callsAllowed: boolean;
  readonly thinking?: boolean;
  /** false: thoughts stay in the text. */
  readonly separateReasoning?: false;
}

/** What one step brought, for all sequences together. */
export interface StepMessage {
  readonly type: "step";
  /** Request id, tokens that it made, its events. */
  readonly results: readonly (readonly [id: number, tokens: number, events: readonly GenerationEvent[]])[];
  readonly state: ModelState;
}

export interface ModelState {
  readonly busy: number;
  readonly queued: number;
  readonly counters: StepCounters;
}

/** Running totals since the process started. */
export interface StepCounters {
  /** Passes through the scheduler's loop in which at least one sequence advanced. */
  readonly decodeSteps: number;
  /** Tokens that were sampled, for all sequences. */
  readonly generatedTokens: number;
  /** Prompt tokens that were evaluated, and that were found in a slot's cache. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
}
