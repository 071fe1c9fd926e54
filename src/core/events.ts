/**
 * What an engine says while it generates: the middle of the waist. An engine makes these events, whatever it is; a writer in
 * `apis/` turns them into bytes. The names follow the AI SDK's stream parts: nouns with verbs.
 *
 * The legal order, per choice: `start`, then any number of deltas and tool calls, then one `finish`. Calls do not nest and do not
 * interleave within a choice: `tool-call-start`, its `tool-call-delta`s, its `tool-call-end`, with indices 0, 1, 2, … Choices may
 * interleave freely. `usage` and `extra` stand anywhere before `end`; `end` is the last event of a generation, and there is exactly
 * one. Nothing is ever thrown in its place.
 *
 * Text, reasoning and refusals come in parts. A delta of another kind than the one before, or a call, ends the part that is open; most
 * engines need no more than that. `part-start` and `part-end` are for sources that know more: two parts of one kind in a row, a
 * part's id or phase, what a thought was signed with.
 */
export type GenerationEvent =
  | StartEvent
  | PartStartEvent
  | PartEndEvent
  | AnnotationEvent
  | TextDeltaEvent
  | ReasoningDeltaEvent
  | RefusalDeltaEvent
  | ToolCallStartEvent
  | ToolCallDeltaEvent
  | ToolCallEndEvent
  | MarkupEvent
  | FinishEvent
  | TokensEvent
  | PromptEvent
  | PromptProgressEvent
  | UsageEvent
  | ExtraEvent
  | EndEvent;

/** The events that belong to one choice. */
export type ChoiceEvent = Exclude<
  GenerationEvent,
  PromptEvent | PromptProgressEvent | UsageEvent | ExtraEvent | EndEvent
>;

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

/** A part of the answer begins, even where the one before it was of the same kind. */
export interface PartStartEvent {
  readonly type: "part-start";
  readonly choice: number;
  readonly kind: "text" | "reasoning" | "refusal";
  /** The id that the source gave to the item which holds the part. Parts in a row with one id are parts of one item. */
  readonly id?: string;
  /** What the text is to the turn: `commentary` before a call, `final_answer`. Source: Responses, `phase`. */
  readonly phase?: string;
}

/** The open part ends. A thought may be sealed by its maker; both forms are opaque, and only their maker can read them again. */
export interface PartEndEvent {
  readonly type: "part-end";
  readonly choice: number;
  /** Source: Messages, `thinking.signature`. */
  readonly signature?: string;
  /** Source: Responses, `encrypted_content`; Messages, `redacted_thinking.data`. */
  readonly encrypted?: string;
}

/** Where words of the open text part come from. */
export interface AnnotationEvent {
  readonly type: "annotation";
  readonly choice: number;
  readonly annotation: Annotation;
}

export interface Annotation {
  readonly url?: string;
  readonly title?: string;
  /** In characters of the part's text, where the source tells; `end` is exclusive. */
  readonly start?: number;
  readonly end?: number;
  readonly citedText?: string;
  /** The annotation as the source's API has it, for a client that speaks the same. */
  readonly native?: Native;
}

/** JSON that only one API has a place for. A writer of that API passes it on; any other leaves it out. */
export interface Native {
  /** The API's name: `chat`, `responses`, `messages`. */
  readonly dialect: string;
  readonly value: Readonly<Record<string, unknown>>;
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
  /** The text belongs to this part, from 0, of a summary of the thought; absent: it is the thought itself. */
  readonly summary?: number;
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
  /** The group that the tool belongs to, which `name` begins with, where the source tells it apart. */
  readonly namespace?: string;
  /** The id of the item that holds the call, where the source gave one beside the call's own. */
  readonly itemId?: string;
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
  /** With reason "length": whether the request's own limit ended it or the model's context was full. Absent: not known. */
  readonly limit?: "max-tokens" | "context";
}

/** Tokens of a choice, where they were asked for: those that the events until its next `tokens` are made of, and markers among them. */
export interface TokensEvent {
  readonly type: "tokens";
  readonly choice: number;
  readonly tokens: readonly number[];
}

/** A prompt's tokens, where they were asked for; before the first delta of its choices. */
export interface PromptEvent {
  readonly type: "prompt";
  /** Which of the request's prompts, from 0. */
  readonly prompt: number;
  readonly tokens: readonly number[];
  /** Where they were asked for, for each token: itself and the likeliest ones in its place; null for the first, before which nothing stood. */
  readonly logprobs?: readonly (readonly PromptTokenLogprob[] | null)[];
}

export interface PromptTokenLogprob {
  readonly token: number;
  readonly text: string;
  /** Of the model's raw distribution. */
  readonly logprob: number;
  /** From 1, the likeliest; null: not known. */
  readonly rank: number | null;
}

/** How far the reading of a prompt is, in tokens, where that was asked for. */
export interface PromptProgressEvent {
  readonly type: "progress";
  /** A choice that waits for it. */
  readonly choice: number;
  readonly total: number;
  /** Found in the cache; part of `processed`. */
  readonly cached: number;
  readonly processed: number;
  /** Since it began, in milliseconds. */
  readonly ms: number;
}

/**
 * It may come more than once, and the last one counts: a local engine tells the prompt's tokens before the first delta, with no
 * completion tokens yet.
 */
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
  /**
   * What the prompt's tokens are made of, under the field's usual names, in the source's order: `cached_tokens` (read from a cache),
   * `cache_write_tokens` (written to one), `audio_tokens`, …
   */
  readonly promptDetails?: Readonly<Record<string, number>>;
  /** The same of the completion: `reasoning_tokens`, `audio_tokens`, … */
  readonly completionDetails?: Readonly<Record<string, number>>;
}

/** Milliseconds and rates of a generation, an extension that is sent on request only. */
export interface Timings {
  /** Until the prompt was ready: its template, its grammar, its tokens. Absent: not known. */
  readonly preparingMs?: number;
  readonly queuedMs: number;
  readonly promptMs: number;
  readonly generationMs: number;
  readonly promptTokensPerSecond: number;
  readonly tokensPerSecond: number;
  /** Tokens that were guessed before they were drawn, and how many of them were right. Absent: none. */
  readonly draftedTokens?: number;
  readonly acceptedTokens?: number;
}

/** What a source adds beyond the waist and the wire may pass on where configuration allows: audio, moderation, a hosted tool's items. */
export interface ExtraEvent {
  readonly type: "extra";
  /** Absent for what stands beside the choices. */
  readonly choice?: number;
  /**
   * Which object of the source's stream the members were found in. "item": the value is a whole item of an answer that the source's
   * API lists items in, at this place among the parts.
   */
  readonly place: "chunk" | "choice" | "delta" | "item";
  /** The API that has a place for it; absent: chat. */
  readonly dialect?: string;
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

/**
 * What went wrong, in kinds that every API has a word for. The status beside each is the usual one.
 *
 * - invalid-request: the request cannot be served as it stands (400)
 * - context-overflow: the prompt is longer than the model's context (400)
 * - authentication, permission: no key or a wrong one (401), a key that may not (403)
 * - not-found: the path, the model or the stored object does not exist (404)
 * - too-large: the body is over the limit (413)
 * - rate-limited: the client asks too often, or its quota is used up (429)
 * - overloaded: too many requests wait, for all clients together (429 or 503)
 * - unavailable: the engine is loading, restarting or stopping (503)
 * - bad-answer: the source answered, but not as it should (502)
 * - timeout: the source was silent for too long (504)
 * - internal: a defect of ours, or of a user's program (500)
 */
export type FailureKind =
  | "invalid-request"
  | "context-overflow"
  | "authentication"
  | "permission"
  | "not-found"
  | "too-large"
  | "rate-limited"
  | "overloaded"
  | "unavailable"
  | "bad-answer"
  | "timeout"
  | "internal";

/** One failure, told in a way that any API can repeat in its own words. */
export interface GenerationFailure {
  readonly kind: FailureKind;
  readonly message: string;
  /** The HTTP status that it has before anything was sent. */
  readonly status: number;
  /** The path of the parameter at fault (`messages[1].content`), if one is. */
  readonly param?: string | null;
  readonly code?: string | null;
  /** What the source itself calls this type of error (`rate_limit_error`), where it told. */
  readonly sourceType?: string;
  /** Of kind "context-overflow", where known: the tokens of the prompt, and the most that there is room for. */
  readonly tokens?: { readonly asked: number; readonly most: number };
  /**
   * The prompt fits, and the request's limit on the answer's length is too high. `max`: the highest limit that the source takes, in tokens;
   * null where its message does not say. `context`: the maximum of prompt and answer together, where `max` is null.
   */
  readonly answerLimit?: { readonly max: number } | { readonly max: null; readonly context: number };
  /** Of kind "not-found", where it is a model: its name, as the client gave it. */
  readonly model?: string;
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
   * Natural logarithm of the probability under the model's raw distribution, before any sampler; null where there is none (the first
   * token of a prompt that is given back).
   */
  readonly logprob: number | null;
  /** The token's UTF-8 bytes; null where the source does not tell. */
  readonly bytes: readonly number[] | null;
  /** The most likely tokens at this place, best first; as many as were asked for. */
  readonly top: readonly TokenAlternative[];
}

export interface TokenAlternative {
  readonly token: string;
  readonly logprob: number | null;
  readonly bytes: readonly number[] | null;
}
