import type { HostedTool, JsonSchema, Message, Tool, ToolChoice } from "./message.ts";

/**
 * What was asked, validated, neutral of any API and complete: an engine needs nothing else. A member that the client did not set is
 * absent, so that an engine can tell "not asked" from "asked for the default" and a user's program sees only what the client set.
 */
export interface GenerationRequest {
  /** The server's id for this request, as in the `x-request-id` header and the log. */
  readonly id: string;
  /** The model as the client named it. */
  readonly model: string;
  /**
   * Whose request it is: an engine where requests wait serves owners in turn. A name, never a key; absent: nobody is told apart.
   */
  readonly owner?: string;
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
  /** Tools that the API's own server would run. An engine that cannot run them answers without. */
  readonly hostedTools?: readonly HostedTool[];
  readonly output?: OutputConstraint;
  readonly reasoning?: ReasoningOptions;
  /** What the answer will be like: it makes it faster where the engine can use it, never different. */
  readonly prediction?: string;
  /** How much is to be said, for models that are trained to it: `low`, `medium`, `high`. */
  readonly verbosity?: string;
  /** The client wants usage in a stream; without a stream it always gets it. */
  readonly wantsUsage: boolean;
  readonly wantsTimings?: boolean;
  /** In a stream, usage is wanted with every batch, as it stands then. */
  readonly wantsRunningUsage?: boolean;
  /** In a stream, how far the reading of the prompt is. */
  readonly wantsProgress?: boolean;
  /** The ids of the prompt's tokens and of the answer's. */
  readonly wantsTokenIds?: boolean;
  /** Present: how likely the prompt's own tokens are, with so many alternatives (0–20) each. */
  readonly promptLogprobs?: { readonly top: number };
  readonly stream: boolean;
  /** Members that are neutral of no API, or that nobody knows, as they came: `metadata`, `service_tier`, a server's own extensions. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly passthrough?: Passthrough;
}

/**
 * The client's own JSON. Only an upstream that speaks the same API looks at it, so that members which nobody here knows go along;
 * all others work from the neutral members.
 */
export interface Passthrough {
  /** The API's name: `chat`, `completions`, `responses`, `messages`. */
  readonly dialect: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The client's headers that say how its JSON is meant (`anthropic-beta`), in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What is asked about the model's thoughts. */
export interface ReasoningOptions {
  /** `none`, `minimal`, `low`, `medium`, `high`, …; what it does is the model's. */
  readonly effort?: string;
  /** Whether the model thinks at all; "adaptive": as it sees fit. Absent: the model's default. */
  readonly mode?: "off" | "on" | "adaptive";
  /** The thought is closed when it is so many tokens long. */
  readonly budgetTokens?: number;
  /** How thoughts are shown; absent: as the API does by default. */
  readonly show?: "raw" | "summary" | "omitted";
  /** Thoughts stay in the text, with the model's markers. */
  readonly inText?: boolean;
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
  /** How many of the last tokens `repeatPenalty` applies to; 0: none, negative: all of the context. */
  readonly repeatLastN?: number;
  /** Token id → bias, −100 to 100. */
  readonly logitBias?: Readonly<Record<string, number>>;
  /** The same for each token of a text, as the model's tokenizer cuts it. */
  readonly textBias?: readonly { readonly text: string; readonly bias: number }[];
  readonly seed?: number;
  /** Of the adapters (LoRA) of a local model, so much of each is used, and nothing of the others. Absent: as the model is configured. */
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

/** When a choice ends. */
export interface Limits {
  /** A limit beyond the context size is no error: the answer ends where the context does. */
  readonly maxTokens?: number;
  /** Not before so many tokens. */
  readonly minTokens?: number;
  readonly ignoreEos?: boolean;
  /** Stop strings; their text is never part of the answer. */
  readonly stop?: readonly string[];
  readonly stopTokenIds?: readonly number[];
  /** Keep the prompt's KV cache for later requests; default true. */
  readonly cachePrompt?: boolean;
  /**
   * "drop-oldest": the oldest messages of a prompt that is longer than the context are left out (`withoutOldest`). The server does this
   * when an engine refuses the prompt, so engines need not look at it. Default: the request is refused.
   */
  readonly overflow?: "drop-oldest";
}

/** What the visible answer must be. It binds what follows the reasoning, never the reasoning. */
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
