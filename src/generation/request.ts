import type { JsonSchema, Message, Tool, ToolChoice } from "./message.ts";

/**
 * What was asked, validated and API-neutral: the other half of the waist. A member that the client did not set is absent, so that
 * an engine can tell "not asked" from "asked for the default" and a user's program sees only what the client set.
 */
export interface GenerationRequest {
  /** The server's id for this request, as in the `x-request-id` header and the log. */
  readonly id: string;
  /** The model as the client named it. */
  readonly model: string;
  readonly prompt: ChatPrompt | TextPrompt;
  /** Choices per prompt (`n`); default 1. With several text prompts, choice = prompt × n + i, as OpenAI numbers them. */
  readonly n?: number;
  readonly sampling: Sampling;
  readonly limits: Limits;
  /** Present: logprobs are wanted, with so many alternatives (0–20) a token. */
  readonly logprobs?: { readonly top: number };
  readonly tools?: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly output?: OutputConstraint;
  readonly reasoning?: {
    readonly effort?: string;
    /** Thoughts stay in the text, with the model's markers. */
    readonly inText?: boolean;
  };
  /** The client wants usage in a stream; without a stream it always gets it. */
  readonly wantsUsage: boolean;
  readonly wantsTimings?: boolean;
  readonly stream: boolean;
  /** Members of the request that the wire does not know, as they came. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** The client's JSON as it came, for engines that forward it. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface ChatPrompt {
  readonly kind: "chat";
  readonly messages: readonly Message[];
  /** The client used the legacy `functions` / `function_call`, and must be answered in kind. */
  readonly legacyFunctions?: boolean;
  readonly template: TemplateOptions;
}

/** Options of a chat template's rendering. */
export interface TemplateOptions {
  /** Extra variables for the template (`chat_template_kwargs`, `template_vars`). */
  readonly variables?: Readonly<Record<string, unknown>>;
  /** What a template that grounds answers in documents (Command R, Granite) is to show; their form is the template's. */
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
  /** Give the prompt back in front of each completion. */
  readonly echo?: boolean;
  /** Generate so many, return the `n` with the highest mean logprob; not with streams. */
  readonly bestOf?: number;
}

/** How a token is chosen. Absent members have the engine's defaults; numbers are within the wire's documented ranges. */
export interface Sampling {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  /** llama.cpp's multiplicative penalty; 1 is off. */
  readonly repeatPenalty?: number;
  /** How many last tokens the penalties look at. */
  readonly repeatLastN?: number;
  /** Token id → bias, −100 to 100. */
  readonly logitBias?: Readonly<Record<string, number>>;
  readonly seed?: number;
  readonly xtc?: { readonly probability: number; readonly threshold: number };
  readonly dry?: {
    readonly multiplier: number;
    readonly base?: number;
    readonly allowedLength?: number;
    readonly lastN?: number;
    readonly sequenceBreakers?: readonly string[];
  };
}

/** When a choice ends. */
export interface Limits {
  readonly maxTokens?: number;
  /** Not before so many tokens. */
  readonly minTokens?: number;
  readonly ignoreEos?: boolean;
  /** Stop strings; their text is never part of the answer. */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  /** Keep the prompt's KV cache for later requests; default true. */
  readonly cachePrompt?: boolean;
}

/** What the visible answer must be. It binds what follows the reasoning, never the reasoning. */
export type OutputConstraint =
  | { readonly type: "text" }
  | { readonly type: "json-object" }
  | {
      readonly type: "json-schema";
      readonly name: string;
      readonly schema: JsonSchema;
      readonly strict: boolean;
      readonly path: string;
    }
  | { readonly type: "grammar"; readonly gbnf: string; readonly path: string }
  | { readonly type: "regex"; readonly pattern: string; readonly path: string }
  | { readonly type: "choice"; readonly options: readonly string[]; readonly path: string };
