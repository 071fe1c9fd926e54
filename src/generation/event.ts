/**
 * What an engine says while it generates: the middle of the waist. An engine makes these events, whatever it is; a writer in
 * `wire/` turns them into bytes. The names follow the AI SDK's stream parts: nouns with verbs.
 *
 * The legal order, per choice: `start`, then any number of deltas and tool calls, then one `finish`. Calls do not nest and do not
 * interleave within a choice: `tool-call-start`, its `tool-call-delta`s, its `tool-call-end`, with indices 0, 1, 2, … Choices may
 * interleave freely. `usage` and `extra` stand anywhere before `end`; `end` is the last event of a generation, and there is exactly
 * one. Nothing is ever thrown in its place.
 */
export type GenerationEvent =
  | StartEvent
  | TextDeltaEvent
  | ReasoningDeltaEvent
  | RefusalDeltaEvent
  | ToolCallStartEvent
  | ToolCallDeltaEvent
  | ToolCallEndEvent
  | MarkupEvent
  | FinishEvent
  | UsageEvent
  | ExtraEvent
  | EndEvent;

/** The events that belong to one choice. */
export type ChoiceEvent = Exclude<GenerationEvent, UsageEvent | ExtraEvent | EndEvent>;

/** Opens a choice. It comes with the choice's first delta (not before), so that an early failure still has its HTTP status. */
export interface StartEvent {
  readonly type: "start";
  /** Position in `choices`, from 0. */
  readonly choice: number;
  /** What the source announced before any delta: one tool call, several, a refusal; absent when it announced nothing. */
  readonly announced?: "tool-call" | "tool-calls" | "refusal";
  readonly source?: SourceIdentity;
}

/** What a source that already speaks an API says of itself; a local engine has none of it. */
export interface SourceIdentity {
  readonly id?: string;
  /** Unix time in seconds. */
  readonly created?: number;
  readonly model?: string;
  readonly systemFingerprint?: string | null;
  readonly serviceTier?: string | null;
  /** Response headers of the source that the client should see (`x-ratelimit-…`), lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TextDeltaEvent {
  readonly type: "text-delta";
  readonly choice: number;
  readonly text: string;
  /** The tokens of this text, when they were asked for. May be non-empty while `text` is empty (an undecided character). */
  readonly logprobs?: readonly TokenLogprob[];
}

export interface ReasoningDeltaEvent {
  readonly type: "reasoning-delta";
  readonly choice: number;
  readonly text: string;
  readonly logprobs?: readonly TokenLogprob[];
}

export interface RefusalDeltaEvent {
  readonly type: "refusal-delta";
  readonly choice: number;
  readonly text: string;
  readonly logprobs?: readonly TokenLogprob[];
}

/** A call begins: its name is complete, its arguments are not. */
export interface ToolCallStartEvent {
  readonly type: "tool-call-start";
  readonly choice: number;
  /** Position among the calls of this choice, from 0, without gaps. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** "custom" for OpenAI's free-text tools: its deltas are input text, not JSON. Default "function". */
  readonly kind?: "function" | "custom";
}

export interface ToolCallDeltaEvent {
  readonly type: "tool-call-delta";
  readonly choice: number;
  readonly index: number;
  /** A further piece of the arguments' JSON text. */
  readonly arguments: string;
}

export interface ToolCallEndEvent {
  readonly type: "tool-call-end";
  readonly choice: number;
  readonly index: number;
  /** "failed": the arguments streamed so far are not, and will not become, a JSON object. */
  readonly status: "succeeded" | "failed";
  /** The call as the model wrote it, for a failed one. */
  readonly raw?: string;
}

/**
 * Text of the model that shows nowhere as it was written: markers, stripped special tokens, trimmed white space, the text of a call.
 * Only a traced reading of raw text has it; writers pass over it. There, the texts of text and reasoning deltas and the `raw` of
 * these events, in order, are the model's text to the last character.
 */
export interface MarkupEvent {
  readonly type: "markup";
  readonly choice: number;
  readonly raw: string;
}

/**
 * Why a choice ended. "tool-calls" exactly if the choice has calls and was not cut; "length" wins over it.
 * Source of the values: OpenAI's specification, `finish_reason`; "function-call" is its legacy form.
 */
export type FinishReason = "stop" | "length" | "tool-calls" | "content-filter" | "function-call";

export interface FinishEvent {
  readonly type: "finish";
  readonly choice: number;
  readonly reason: FinishReason;
  /** The stop string (or the text of the stop token) that ended the choice, when one of the request's did. */
  readonly stop?: string;
}

export interface UsageEvent {
  readonly type: "usage";
  readonly usage: Usage;
  readonly timings?: Timings;
}

/** Token counts. The prompt counts once for all choices, completions are summed. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Absent: the sum of both. A source's own figure is kept even where it differs. */
  readonly totalTokens?: number;
  /** OpenAI's `prompt_tokens_details`, with its own key names, in its order: `cached_tokens`, `audio_tokens`, … */
  readonly promptDetails?: Readonly<Record<string, number>>;
  /** OpenAI's `completion_tokens_details`: `reasoning_tokens`, `audio_tokens`, … */
  readonly completionDetails?: Readonly<Record<string, number>>;
}

/** Milliseconds and rates of a generation, an extension that is sent on request only. */
export interface Timings {
  readonly queuedMs: number;
  readonly promptMs: number;
  readonly generationMs: number;
  readonly promptTokensPerSecond: number;
  readonly tokensPerSecond: number;
}

/** What a source adds beyond the waist and the wire may pass on where configuration allows: citations, annotations, audio, moderation. */
export interface ExtraEvent {
  readonly type: "extra";
  /** Absent for what stands beside `choices`. */
  readonly choice?: number;
  /** Which object of the chunk the members were found in. */
  readonly place: "chunk" | "choice" | "delta";
  readonly value: Readonly<Record<string, unknown>>;
}

export interface EndEvent {
  readonly type: "end";
  readonly end: GenerationEnd;
}

/**
 * How a generation ended as a whole. All but "done" and "client-gone" carry a failure that the client is shown.
 *
 * - done: every choice has finished
 * - rejected: the engine cannot serve this request (template error, context overflow, queue full); only before the first other event
 * - truncated: the source stopped with neither finish reason nor end mark
 * - upstream-error: the source reported an error
 * - engine-error: the engine itself failed (a crashed process, an exception in a program)
 * - idle-timeout: the source went silent
 * - client-gone: the signal was aborted; nobody reads any more
 * - shutdown: the server is stopping and the grace period is over
 */
export type GenerationEnd =
  | { readonly kind: "done" }
  | { readonly kind: "client-gone" }
  | {
      readonly kind: "rejected" | "truncated" | "upstream-error" | "engine-error" | "idle-timeout" | "shutdown";
      readonly failure: GenerationFailure;
    };

/** One failure, told in a way that any API can repeat. */
export interface GenerationFailure {
  readonly message: string;
  /** The HTTP status that it has before anything was sent: 400, 404, 422, 429, 500, 502, 503, 504 or an upstream's own. */
  readonly status: number;
  /** OpenAI's error `type`. */
  readonly type: string;
  /** The path of the parameter at fault (`messages[1].content`), if one is. */
  readonly param?: string | null;
  readonly code?: string | null;
  /** For 429 and 503: after how many seconds a retry makes sense. */
  readonly retryAfterSeconds?: number;
  /** Response headers of the source that the client should see (`x-ratelimit-…`), lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For the log only; never sent to a client. */
  readonly cause?: unknown;
}

/** One token's logprob, with the most likely alternatives. */
export interface TokenLogprob {
  readonly token: string;
  /**
   * Natural logarithm of the probability under the model's raw distribution, before any sampler; NaN where there is none (the first
   * token of a prompt that is given back).
   */
  readonly logprob: number;
  /** The token's UTF-8 bytes; null where the source does not tell. */
  readonly bytes: readonly number[] | null;
  /** The most likely tokens at this place, best first; as many as were asked for. */
  readonly top: readonly TokenAlternative[];
}

export interface TokenAlternative {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[] | null;
}
