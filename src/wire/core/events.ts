import type { HostedCallIdentity, HostedFailure, HostedFunction, HostedResult } from "./hosted-tool.ts";
import type { JsonMistake } from "./json-mistake.ts";
import type { CallState, ReasoningState } from "./turn-state.ts";

/**
 * The events of a generation. Every engine emits these events, and a writer in `apis/` converts them to bytes. The names follow the AI
 * SDK's stream parts.
 *
 * The legal order, per choice: `start`, then any number of deltas and tool calls, then one `finish`. Calls do not nest and do not
 * interleave within a choice: `tool-call-start`, its `tool-call-delta`s, its `tool-call-end`, with indices 0, 1, 2, … Choices may
 * interleave freely. `usage` and `extra` may occur anywhere before `end`. `end` is the last event of every generation: engines do not
 * throw instead.
 *
 * Text, reasoning and refusals form parts. A delta of another kind, or a call, ends the open part. `part-start` and `part-end` are for
 * sources that report more: consecutive parts of one kind, a part's id or phase, the state of reasoning.
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
  | HostedFunctionsEvent
  | HostedCallStartEvent
  | HostedCallDeltaEvent
  | HostedCallEndEvent
  | HostedResultEvent
  | HostedApprovalEvent
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

/** Opens a choice. Emitted together with the choice's first delta, so that an early failure still has its HTTP status. */
export interface StartEvent {
  readonly type: "start";
  /** Position in `choices`, from 0. */
  readonly choice: number;
  /** What the source announced before the first delta: one tool call, several, a refusal. */
  readonly announced?: "tool-call" | "tool-calls" | "refusal";
  readonly source?: SourceIdentity;
}

/** The identity that an upstream's answer contains. */
export interface SourceIdentity {
  readonly id?: string;
  /** Unix time in seconds. */
  readonly created?: number;
  readonly model?: string;
  readonly systemFingerprint?: string | null;
  readonly serviceTier?: string | null;
  /** Response headers of the source for the client (`x-ratelimit-…`), in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Begins a part of the answer, even after a part of the same kind. */
export interface PartStartEvent {
  readonly type: "part-start";
  readonly choice: number;
  readonly kind: "text" | "reasoning" | "refusal";
  /** The source's id of the item that contains the part. Consecutive parts with the same id belong to one item. */
  readonly id?: string;
  /** The role of the text in the turn: `commentary` before a call, `final_answer`. Source: Responses, `phase`. */
  readonly phase?: string;
}

/** Ends the open part. */
export interface PartEndEvent {
  readonly type: "part-end";
  readonly choice: number;
  /** Of reasoning. */
  readonly state?: ReasoningState;
}

/** A citation in the open text part. */
export interface AnnotationEvent {
  readonly type: "annotation";
  readonly choice: number;
  readonly annotation: Annotation;
}

export interface Annotation {
  readonly url?: string;
  readonly title?: string;
  /** In characters of the part's text, if known; `end` is exclusive. */
  readonly start?: number;
  readonly end?: number;
  readonly citedText?: string;
  /** The annotation in the source's API, for a client of the same API. */
  readonly native?: DialectJson;
}

/** JSON that exists in one API only. Writers of other APIs omit it. */
export interface DialectJson {
  /** The API's name: `chat`, `responses`, `messages`. */
  readonly dialect: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface TextDeltaEvent {
  readonly type: "text-delta";
  readonly choice: number;
  readonly text: string;
  /** The tokens of this text, if requested. May be non-empty while `text` is empty (an incomplete character). */
  readonly logprobs?: readonly TokenLogprob[];
}

export interface ReasoningDeltaEvent {
  readonly type: "reasoning-delta";
  readonly choice: number;
  readonly text: string;
  /** The text belongs to this part, from 0, of a summary of the reasoning; absent: to the reasoning itself. */
  readonly summary?: number;
  readonly logprobs?: readonly TokenLogprob[];
}

export interface RefusalDeltaEvent {
  readonly type: "refusal-delta";
  readonly choice: number;
  readonly text: string;
  readonly logprobs?: readonly TokenLogprob[];
}

/** Begins a call. Its name is complete, its arguments follow. */
export interface ToolCallStartEvent {
  readonly type: "tool-call-start";
  readonly choice: number;
  /** Position among the calls of this choice, from 0, without gaps. */
  readonly index: number;
  readonly id: string;
  readonly name: string;
  /** "custom" for OpenAI's free-text tools, whose deltas are input text, not JSON. Default "function". */
  readonly kind?: "function" | "custom";
  /** The group of the tool, with which `name` begins, if the source reports it separately. */
  readonly namespace?: string;
  /** The id of the item that contains the call, if it differs from the call's id. */
  readonly itemId?: string;
  /** Members that calls have in one API only, such as Anthropic's `caller`. */
  readonly native?: DialectJson;
  /** What the source demands back with this call. */
  readonly state?: CallState;
}

export interface ToolCallDeltaEvent {
  readonly type: "tool-call-delta";
  readonly choice: number;
  readonly index: number;
  /** A further chunk of the arguments' JSON text. */
  readonly arguments: string;
}

export interface ToolCallEndEvent {
  readonly type: "tool-call-end";
  readonly choice: number;
  readonly index: number;
  /** "failed": the arguments are not a JSON object. */
  readonly status: "succeeded" | "failed";
  /** The raw text of a failed call. */
  readonly raw?: string;
  /** Members and state that the source has sent after the call's start (see `ToolCallStartEvent`). They are added to those of the start. */
  readonly native?: DialectJson;
  readonly state?: CallState;
}

/** The functions of an MCP server, as the model is offered them. */
export interface HostedFunctionsEvent {
  readonly type: "hosted-functions";
  readonly choice: number;
  readonly id: string;
  /** The label of the server. */
  readonly tool: string;
  readonly functions: readonly HostedFunction[] | HostedFailure;
  /** Only the place of the list: the functions come in a later event with this id. */
  readonly isPending?: true;
  /** The item of the source's API. */
  readonly native?: DialectJson;
}

/**
 * Begins a call of a hosted tool (`HostedTool`), which runs before the answer continues. Its deltas and its end follow directly, its result
 * at any time after them.
 */
export interface HostedCallStartEvent extends HostedCallIdentity {
  readonly type: "hosted-call-start";
  readonly choice: number;
  /** The client's approval of the call. */
  readonly approvalId?: string;
  /** The beginning of the call in the source's API. */
  readonly native?: DialectJson;
}

export interface HostedCallDeltaEvent {
  readonly type: "hosted-call-delta";
  readonly choice: number;
  readonly id: string;
  /** A further chunk of the arguments' JSON text. */
  readonly arguments: string;
}

/** The arguments are complete: the tool runs. */
export interface HostedCallEndEvent {
  readonly type: "hosted-call-end";
  readonly choice: number;
  readonly id: string;
}

export interface HostedResultEvent extends HostedCallIdentity {
  readonly type: "hosted-result";
  readonly choice: number;
  readonly result: HostedResult;
  /** The result in the source's API: the block of the result in Messages, the whole item of the call in Responses. */
  readonly native?: DialectJson;
}

/** A call that runs when the client has approved it, in a later request. */
export interface HostedApprovalEvent extends HostedCallIdentity {
  readonly type: "hosted-approval";
  readonly choice: number;
  readonly arguments: string;
  readonly native?: DialectJson;
}

/**
 * Text of the model that is not part of the answer: markers, stripped special tokens, trimmed white space, the text of a call. Only
 * emitted when raw text is traced; writers ignore it. The texts of text and reasoning deltas and the `raw` of these events, in order, are
 * the model's whole text.
 */
export interface MarkupEvent {
  readonly type: "markup";
  readonly choice: number;
  readonly raw: string;
}

/**
 * Why a choice ended. "tool-calls" if and only if the choice has calls and was not cut by its length.
 * Source of the values: OpenAI's specification, `finish_reason`; "function-call" is its legacy form.
 */
export type FinishReason = "stop" | "length" | "tool-calls" | "content-filter" | "function-call";

export interface FinishEvent {
  readonly type: "finish";
  readonly choice: number;
  readonly reason: FinishReason;
  /** The stop string of the request (or the text of its stop token) that ended the choice. */
  readonly stop?: string;
  /** The answer may go on: the client sends it back, and its hosted calls without a result run. */
  readonly paused?: true;
  /** With reason "length": the request's limit, a full context, or a text that repeats itself (`LoopGuard`). Absent: unknown. */
  readonly limit?: "max-tokens" | "context" | "loop";
}

/** Tokens of a choice, if requested: those of the events until the next `tokens`, markers included. */
export interface TokensEvent {
  readonly type: "tokens";
  readonly choice: number;
  readonly tokens: readonly number[];
}

/** A prompt's tokens, if requested. Emitted before the first delta of its choices. */
export interface PromptEvent {
  readonly type: "prompt";
  /** The index of the prompt in the request. */
  readonly prompt: number;
  readonly tokens: readonly number[];
  /** If requested, for each token: itself and the most likely alternatives; null for the first token. */
  readonly logprobs?: readonly (readonly PromptTokenLogprob[] | null)[];
}

export interface PromptTokenLogprob {
  readonly token: number;
  readonly text: string;
  /** In the model's raw distribution. */
  readonly logprob: number;
  /** From 1, the most likely; null: unknown. */
  readonly rank: number | null;
}

/** The progress of prompt processing, in tokens, if requested. */
export interface PromptProgressEvent {
  readonly type: "progress";
  /** A choice of the prompt. */
  readonly choice: number;
  readonly total: number;
  /** Found in the cache. Included in `processed`. */
  readonly cached: number;
  readonly processed: number;
  /** Milliseconds since the start. */
  readonly ms: number;
}

/** May be emitted more than once: the last one counts. A local engine reports the prompt's tokens before the first delta. */
export interface UsageEvent {
  readonly type: "usage";
  readonly usage: Usage;
  readonly timings?: Timings;
}

/** Token counts. The prompt is counted once for all choices, completions are summed. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Absent: the sum of both. A source's own total is kept even if it differs. */
  readonly totalTokens?: number;
  /**
   * Details of the prompt's tokens, in the source's order: `cached_tokens` (read from a cache),
   * `cache_write_tokens` (written to one), `audio_tokens`, …
   */
  readonly promptDetails?: Readonly<Record<string, number>>;
  /** The tokens written to a cache by how long they stay there: `ttl_30m_tokens`, `ttl_12h_tokens`. */
  readonly cacheWriteDetails?: Readonly<Record<string, number>>;
  /** Details of the completion's tokens: `reasoning_tokens`, `audio_tokens`, … */
  readonly completionDetails?: Readonly<Record<string, number>>;
}

/** Times and rates of a generation: an extension that is sent only if requested. */
export interface Timings {
  /** Rendering the template, compiling the grammar and tokenizing. Absent: unknown. */
  readonly preparingMs?: number;
  readonly queuedMs: number;
  readonly promptMs: number;
  readonly generationMs: number;
  readonly promptTokensPerSecond: number;
  readonly tokensPerSecond: number;
  /** Draft tokens of speculative decoding, and the number of accepted ones. Absent: none. */
  readonly draftedTokens?: number;
  readonly acceptedTokens?: number;
}

/** Members of a source's answer that have no event: audio, moderation, items of hosted tools. Passed on if the configuration allows it. */
export interface ExtraEvent {
  readonly type: "extra";
  /** Absent: outside of the choices. */
  readonly choice?: number;
  /**
   * The object of the source's stream that contains the members. "item": the value is a whole item of the answer, at this position among
   * the parts.
   */
  readonly place: "chunk" | "choice" | "delta" | "item";
  /** The API that the value belongs to; default: chat. */
  readonly dialect?: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export interface EndEvent {
  readonly type: "end";
  readonly end: GenerationEnd;
}

/**
 * How a generation ended. All but "done" and "client-gone" have a failure for the client.
 *
 * - done: every choice has finished
 * - rejected: the engine cannot serve this request (template error, context overflow, queue full); only before the first other event
 * - truncated: the source stopped without finish reason and end mark
 * - upstream-error: the source reported an error
 * - engine-error: the engine failed (a crashed process, an exception in a program)
 * - idle-timeout: the source sent nothing for too long
 * - client-gone: the client has disconnected
 * - shutdown: the server is stopping and the grace period has ended
 */
export type GenerationEnd =
  | { readonly kind: "done" }
  | { readonly kind: "client-gone" }
  | {
      readonly kind: "rejected" | "truncated" | "upstream-error" | "engine-error" | "idle-timeout" | "shutdown";
      readonly failure: GenerationFailure;
    };

/**
 * The kinds of failures that every API can express, with the usual status.
 *
 * - invalid-request: the request is invalid (400)
 * - context-overflow: the prompt is longer than the model's context (400)
 * - authentication, permission: a missing or wrong key (401), a key without permission (403)
 * - not-found: the path, the model or the stored object does not exist (404)
 * - too-large: the body is over the limit (413)
 * - rate-limited: the client sends too many requests, or its quota is exhausted (429)
 * - overloaded: too many requests of all clients wait (429 or 503)
 * - unavailable: the engine is loading, restarting or stopping (503)
 * - bad-answer: the source's answer is invalid (502)
 * - timeout: the source was silent for too long (504)
 * - internal: a defect of the server or of a user's program (500)
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

/** A budget in money: of a day, of a month, or in all. */
export type BudgetBound = "budget-day" | "budget-month" | "budget-total";

/** A failure, independent of any API. */
export interface GenerationFailure {
  readonly kind: FailureKind;
  readonly message: string;
  /** The source or a program wrote the message, which may quote the conversation or a key: it is not logged. */
  readonly isForeign?: true;
  /** The HTTP status if nothing has been sent yet. */
  readonly status: number;
  /** The path of the invalid parameter (`messages[1].content`), if any. */
  readonly param?: string | null;
  readonly code?: string | null;
  /** The source's own type of the error (`rate_limit_error`), if known. */
  readonly sourceType?: string;
  /** For kind "context-overflow", if known: the number of tokens of the prompt, and the maximum. */
  readonly tokens?: { readonly asked: number; readonly most: number };
  /**
   * The prompt fits, but the request's limit on the answer's length is too high. `max`: the highest limit that the source takes, in tokens;
   * null if its message does not contain it. `context`: the maximum of prompt and answer together, where `max` is null.
   */
  readonly answerLimit?: { readonly max: number } | { readonly max: null; readonly context: number };
  /** For kind "not-found": the model that the client requested. */
  readonly model?: string;
  /** The first place where the request's body is not JSON. */
  readonly jsonMistake?: JsonMistake;
  /** A limit of the client's key that the request exceeds. `key`: its name. `model`: as the request names it. */
  readonly limit?: {
    readonly bound: "requests" | "tokens" | "day" | "concurrency" | BudgetBound;
    readonly most: number;
    /** When a spent budget is there again, in Unix time in milliseconds. Absent: never, or no budget is spent. */
    readonly untilMs?: number;
    readonly key: string;
    readonly model: string | undefined;
  };
  /** An image of the request cannot be used. */
  readonly image?: ImageProblem;
  /** For 429 and 503: the number of seconds after which a retry makes sense. */
  readonly retryAfterSeconds?: number;
  /** Response headers of the source for the client (`x-ratelimit-…`), in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of the source's error that clients of the same API act on. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** The id that the source's error gives to its request, in Anthropic's form. */
  readonly sourceRequestId?: string;
  /** For the log only; never sent to a client. Of an `Error`, its name, code and stack are logged without the message; a string as it is. */
  readonly cause?: unknown;
}

/**
 * Why an image cannot be used: its data is not base64, its type is not read, the file is damaged, its URL leads to none, the file has too
 * many bytes, or the picture a side with too many pixels. `most`: the limit. A URL is at most 1,000 characters long here.
 */
export type ImageProblem =
  | { readonly why: "base64" | "format" | "damaged" }
  | { readonly why: "url"; readonly url: string }
  | { readonly why: "bytes"; readonly bytes: number; readonly most: number }
  | { readonly why: "side"; readonly most: number };

/** The log probability of a token, with the most likely alternatives. */
export interface TokenLogprob {
  readonly token: string;
  /**
   * Natural logarithm of the probability in the model's raw distribution, before any sampler; null for the first token of an echoed
   * prompt.
   */
  readonly logprob: number | null;
  /** The token's UTF-8 bytes; null: unknown. */
  readonly bytes: readonly number[] | null;
  /** The most likely tokens at this position, best first. */
  readonly top: readonly TokenAlternative[];
}

export interface TokenAlternative {
  readonly token: string;
  readonly logprob: number | null;
  readonly bytes: readonly number[] | null;
}

const invisible: ReadonlySet<GenerationEvent["type"]> = new Set(["start", "part-start", "usage", "extra", "end"]);

/**
 * Whether a client sees the event. Before the first visible event an engine may retry, and the server may answer with the status of a
 * failure.
 */
export function isVisible(event: GenerationEvent): boolean {
  return !invisible.has(event.type);
}
