import type { ClientKey } from "./client-key.ts";
import type { TurnState } from "./turn-state.ts";
import type { HostedTool } from "./hosted-tool.ts";
import type { JsonSchema, Message, Tool, ToolChoice } from "./message.ts";
import { invalidRequest } from "./failure.ts";

/**
 * A validated request, independent of any API. It contains everything that an engine needs. A member that the client did not set is
 * absent: an engine can distinguish it from the default, and a user's program gets only what the client set.
 */
export interface GenerationRequest {
  /** The server's id for this request, as in the `x-request-id` header and the log. */
  readonly id: string;
  /** The model as the client named it. */
  readonly model: string;
  /** The name of the owner of the client's key. An engine with a queue serves owners in turn. Absent: clients have no keys. */
  readonly owner?: string;
  /** The client's own key, for an upstream with `passKey`. */
  readonly clientKey?: ClientKey;
  /** The order in an engine's queue; default `default`. */
  readonly tier?: QueueTier;
  readonly prompt: ChatPrompt | TextPrompt;
  /** Choices per prompt (`n`); default 1. With several text prompts, choice = prompt × n + i, as OpenAI numbers them. */
  readonly n?: number;
  readonly sampling: Sampling;
  readonly limits: AnswerLimits;
  /** Log probabilities are requested, with `top` alternatives (0–20) for each token. */
  readonly logprobs?: { readonly top: number };
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  /** Tools that the API's vendor runs. An engine that cannot run them ignores them. */
  readonly hostedTools?: readonly HostedTool[];
  readonly output?: OutputConstraint;
  readonly reasoning?: ReasoningOptions;
  /** The expected answer, as a draft for speculative decoding. It never changes the answer. */
  readonly prediction?: string;
  /** The verbosity of the answer, for models that are trained for it: `low`, `medium`, `high`. */
  readonly verbosity?: string;
  /** Usage is requested for a stream. Answers without a stream always have it. */
  readonly wantsUsage: boolean;
  readonly wantsTimings?: boolean;
  /** The current usage is requested with every batch of a stream. */
  readonly wantsRunningUsage?: boolean;
  /** The progress of prompt processing is requested for a stream. */
  readonly wantsProgress?: boolean;
  /** The ids of the prompt's and the answer's tokens are requested. */
  readonly wantsTokenIds?: boolean;
  /** Log probabilities of the prompt's tokens are requested, with `top` alternatives (0–20) for each. */
  readonly promptLogprobs?: { readonly top: number };
  readonly stream: boolean;
  /** Members without a neutral form, and unknown ones, unchanged: `metadata`, `service_tier`, a server's own extensions. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly passthrough?: Passthrough;
}

/** `priority` comes before `default`, and `default` before `flex`. */
export type QueueTier = "priority" | "default" | "flex";

/**
 * The client's own JSON. Only an upstream of the same API uses it, so that unknown members are passed on. All others use the neutral
 * members.
 */
export interface Passthrough {
  /** The API's name: `chat`, `completions`, `responses`, `messages`; `hosted-tools` where no upstream may use the JSON. */
  readonly dialect: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The client's headers that affect the meaning of its JSON (`anthropic-beta`), in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The content of each value in `body` that this server has sealed for the client (`TurnSeal`). Absent: `body` has no sealed value. */
  readonly sealed?: SealedValues;
  /** The messages of `prompt` have other states than `body`: what `body` lacks is added to it, and what they lack is left out of it. */
  readonly hasOtherStates?: boolean;
}

/** Values that this server has sealed, and what each contains. */
export interface SealedValues {
  get(value: string): { readonly text?: string; readonly state?: TurnState } | undefined;
}

/** Options of the model's reasoning. */
export interface ReasoningOptions {
  /** `none`, `minimal`, `low`, `medium`, `high`, …: its effect depends on the model. */
  readonly effort?: string;
  /** Whether the model reasons; "adaptive": the model decides. Default: the model's. */
  readonly mode?: "off" | "on" | "adaptive";
  /** The maximum length of the reasoning, in tokens. */
  readonly budgetTokens?: number;
  /** How the reasoning is shown; default: the API's. */
  readonly show?: "raw" | "summary" | "omitted";
  /** The reasoning stays in the text, with the model's markers. */
  readonly inText?: boolean;
}

export interface ChatPrompt {
  readonly kind: "chat";
  readonly messages: readonly Message[];
  /** The client used the legacy `functions` / `function_call`, and gets a legacy answer. */
  readonly legacyFunctions?: boolean;
  readonly template: TemplateOptions;
}

/** Options of a chat template's rendering. */
export interface TemplateOptions {
  /** Extra variables for the template (`chat_template_kwargs`, `template_vars`). */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** Documents for templates that ground answers in them (Command R, Granite), in the template's form. */
  readonly documents?: readonly unknown[];
  /** Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Continue the last message, which is the assistant's, instead of opening a new one; needs `addGenerationPrompt: false`. */
  readonly continueFinalMessage?: boolean;
  /** Appended to the rendered prompt when a generation prompt is added. */
  readonly responsePrefix?: string;
}

/** A prompt of the legacy completions endpoint: one entry a prompt, each text or token ids. */
export interface TextPrompt {
  readonly kind: "text";
  readonly prompts: readonly (string | readonly number[])[];
  readonly suffix?: string;
  /** Prepend the prompt to each completion. */
  readonly echo?: boolean;
  /** Generate this many completions and return the `n` with the highest mean logprob; not with streams. */
  readonly bestOf?: number;
}

/** Sampling parameters. Absent members have the engine's defaults. Numbers are within the documented ranges. */
export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  /** llama.cpp's multiplicative penalty; 1 is off. */
  readonly repeatPenalty?: number;
  /** The number of last tokens that `repeatPenalty` applies to; 0: none, negative: the whole context. */
  readonly repeatLastN?: number;
  /** Token id → bias, −100 to 100. */
  readonly logitBias?: Readonly<Record<string, number>>;
  /** A bias for each token of a text. */
  readonly textBias?: readonly { readonly text: string; readonly bias: number }[];
  readonly seed?: number;
  /** The scales of a local model's LoRA adapters; others are not applied. Default: the model's configuration. */
  readonly adapters?: readonly { readonly id: number; readonly scale: number }[];
  readonly xtc?: { readonly probability: number; readonly threshold: number };
  readonly dry?: {
    readonly multiplier: number;
    readonly base?: number;
    readonly allowedLength?: number;
    readonly lastN?: number;
    readonly sequenceBreakers?: readonly string[];
  };
}

/** The conditions that end a choice. */
export interface AnswerLimits {
  /** May exceed the context size: the answer then ends when the context is full. 0: the prompt is only processed (`ModelInfo.prewarms`). */
  readonly maxTokens?: number;
  /** The minimum number of tokens. */
  readonly minTokens?: number;
  readonly ignoreEos?: boolean;
  /** The maximum number of calls of hosted tools. */
  readonly maxToolCalls?: number;
  /** Stop strings. They are not part of the answer. */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  /** Keep the prompt's KV cache for later requests; default true. */
  readonly cachePrompt?: boolean;
  /**
   * "drop-oldest": if an engine refuses the prompt as longer than the context, the server removes the oldest messages (`withoutOldest`)
   * and tries again. Engines ignore this member. Default: the request is refused.
   */
  readonly overflow?: "drop-oldest";
}

/** A constraint on the visible answer. It does not apply to the reasoning. */
export type OutputConstraint =
  | { readonly type: "text" }
  | { readonly type: "json-object" }
  | {
      readonly type: "json-schema";
      readonly name: string;
      readonly description?: string;
      readonly schema: JsonSchema;
      readonly strict: boolean;
      readonly path: string;
    }
  | { readonly type: "grammar"; readonly gbnf: string; readonly path: string }
  | { readonly type: "regex"; readonly pattern: string; readonly path: string }
  | { readonly type: "choice"; readonly options: readonly string[]; readonly path: string };

/**
 * Whether a request may continue the last message (`continue_final_message`, as vLLM and transformers have it): no generation prompt
 * is added, nothing else is appended to the prompt, and the last message is the assistant's. Throws `FailureError` if it may not.
 */
export function checkContinuation(messages: readonly Message[], options: TemplateOptions): void {
  if (options.continueFinalMessage !== true) return;
  if (options.addGenerationPrompt !== false) {
    throw invalidRequest(
      "'continue_final_message' needs 'add_generation_prompt' to be false.",
      "continue_final_message",
    );
  }
  if (options.responsePrefix !== undefined) {
    throw invalidRequest("'continue_final_message' and 'response_prefix' exclude each other.", "response_prefix");
  }
  const last = messages.at(-1);
  if (last?.role === "assistant") return;
  const path = last?.path ?? `messages[${messages.length - 1}]`;
  throw invalidRequest("'continue_final_message' needs a last message from the assistant.", `${path}.role`);
}
