import type { CacheMiss } from "../../wire/core/cache-miss.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { TurnStateCounts } from "../../wire/core/generation-observer.ts";
import type { InspectedPrompt } from "../../wire/core/inspection.ts";
import { writeRecording } from "../capture/recording.ts";

/** The recorded items of a sequence, in order. */
export interface TapeContents<T> {
  readonly chunks: readonly T[];
  /** Absent if nothing was dropped. */
  readonly left_out?: LeftOut;
}

/** What was dropped between the beginning and the end. */
export interface LeftOut {
  /** The number of items before it. */
  readonly after: number;
  /** The number of dropped items, */
  readonly chunks: number;
  /** and of characters in their texts. */
  readonly characters: number;
}

/** How a request ended; "open": it has not ended. */
export const inspectedOutcomes = ["open", "finished", "refused", "failed", "cancelled"] as const;
export type InspectedOutcome = (typeof inspectedOutcomes)[number];

/** What a request of a client's session is for, if it is not a turn of the main conversation. */
export type RequestPurpose = "sub-agent" | "title";

/** One line of a list of requests. Times are in milliseconds. */
export interface RequestSummary {
  /** As in the header `x-request-id` and in the log. */
  readonly id: string;
  /** From 1, in the order of arrival. */
  readonly number: number;
  /** The time of arrival, in Unix time. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly outcome: InspectedOutcome;
  /** Until the end, or until now. */
  readonly ms: number;
  /** The name of the client's key. */
  readonly key?: string;
  /** Absent for paths without metrics. */
  readonly api?: string;
  /** As the client named it. */
  readonly model?: string;
  /** The rule of the configuration that gave the request to another model, by the name that clients use. */
  readonly route?: { readonly rule: string; readonly model: string };
  /** The engine that was asked, and its own name for the model: the same for all aliases. */
  readonly engine?: string;
  readonly engine_model?: string;
  readonly stream?: boolean;
  readonly status?: number;
  /** Until the first delta of the answer. */
  readonly first_ms?: number;
  /** Measured by a local model, one after the other: until its prompt was ready, in the queue, processing the prompt, and generating. */
  readonly phases?: RequestPhases;
  readonly prompt_tokens?: number;
  /** The source counted no tokens: the prompt's, estimated from its length. */
  readonly estimated_prompt_tokens?: number;
  readonly cached_tokens?: number;
  readonly completion_tokens?: number;
  /** In US dollars; absent: the model has no price. */
  readonly cost?: number;
  /** From the first delta to the end; absent if the answer came as a whole. */
  readonly tokens_per_second?: number;
  /** The names of the tools that the answer calls; at most 8. */
  readonly calls?: readonly string[];
  /** The beginning of the last text of the user, or of the last tool result if no text follows it. */
  readonly snippet?: string;
  readonly snippet_of?: "user" | "tool";
  /** The client's program: the first product in its `user-agent`. */
  readonly client?: string;
  /** The id of the first request of the client's session, or of the conversation if the client names no session. */
  readonly thread?: string;
  /** The id of the first request of the conversation, and the place of this request in it, from 1. */
  readonly conversation?: string;
  readonly turn?: number;
  /** Absent: not known, or a turn of the client's main conversation. */
  readonly purpose?: RequestPurpose;
  /** The beginning of the first text of the user; absent if it is the snippet. */
  readonly topic?: string;
  /** The finish reasons of the choices. */
  readonly finish?: string;
  /** The number of requests to upstreams. */
  readonly attempts?: number;
  /** Repairs of upstream answers, with their counts. */
  readonly repairs?: Readonly<Record<string, number>>;
  /** What became of the states of earlier turns: absent if there were none, and none was missing. */
  readonly turn_states?: TurnStateCounts;
  /** How often the stream lost its last client, and how often a client resumed it. */
  readonly lost?: number;
  readonly resumes?: number;
  readonly error?: string;
  /** Why a local model processed much of the prompt again. */
  readonly cache_miss?: ShownCacheMiss;
  /** Texts, headers and events are not kept, because requests arrived faster than texts are kept. */
  readonly brief?: true;
  /** The body of the request or of the answer was too long to be kept completely. */
  readonly cut?: true;
}

/** In milliseconds. */
export interface RequestPhases {
  readonly preparing: number;
  readonly queue: number;
  readonly prefill: number;
  readonly generation: number;
}

export interface ShownCacheMiss extends CacheMiss {
  /** The cause in words. */
  readonly says: string;
}

/** The recorded requests. */
export interface InspectedRequestList {
  /** The oldest first. */
  readonly requests: readonly RequestSummary[];
  /** Their size in memory and the limit, in bytes. */
  readonly bytes: number;
  readonly max_bytes: number;
  /** The number of requests that were dropped for newer ones. */
  readonly dropped: number;
}

/** The texts of a request that a search looks at; "line": what the list shows, such as an id, an error or a tool's name. */
export type SearchedPlace = "line" | "request" | "prompt" | "reasoning" | "answer" | "tool call" | "upstream answer";

/** A match, with the text around it in one line. */
export interface SearchHit {
  readonly place: SearchedPlace;
  readonly text: string;
  /** The ranges of the words in the text, in characters; the end is exclusive. */
  readonly marks: readonly (readonly [start: number, end: number])[];
}

/** A request that has all words of a query, and its first matches, one for each of its texts. */
export interface SearchResult {
  readonly id: string;
  readonly hits: readonly SearchHit[];
}

/** The last event of a search. */
export interface SearchEnd {
  readonly searched: number;
  readonly found: number;
  /** There may be further results: the search ends at a maximum. */
  readonly more?: true;
}

/** Everything recorded about one request. Secrets are masked; times are in milliseconds since its arrival. */
export interface InspectedRequest extends RequestSummary {
  readonly request: {
    readonly headers: readonly Header[];
    /** As received; absent if it was compressed. */
    readonly body?: KeptText;
    /** The request to the engine, as JSON. */
    readonly understood?: KeptText;
  };
  /** In the order in which engines reported them. */
  readonly prompts: readonly InspectedPrompt[];
  /** The raw output of the model for each choice, with markers and control tokens. */
  readonly written: readonly { readonly choice: number; readonly text: TapeContents<TimedText> }[];
  readonly events: TapeContents<TimedEvents>;
  readonly response: {
    readonly headers: readonly Header[];
    readonly body: TapeContents<TimedText>;
  };
  /** Requests to upstreams, with their responses. */
  readonly asked: readonly InspectedAttempt[];
  /** Where an exception was thrown: its name and its stack, as in the log. */
  readonly stack?: string;
}

export type Header = readonly [name: string, value: string];

/** A text that may be truncated. */
export interface KeptText {
  readonly text: string;
  /** The number of characters that were truncated. */
  readonly left_out?: number;
}

export interface TimedText {
  readonly ms: number;
  readonly text: string;
}

export interface TimedEvents {
  readonly ms: number;
  readonly events: readonly GenerationEvent[];
}

/** One request to an upstream. */
export interface InspectedAttempt {
  readonly url: string;
  readonly ms: number;
  readonly headers: readonly Header[];
  readonly body: KeptText;
  readonly status?: number;
  readonly response_headers: readonly Header[];
  readonly response: TapeContents<TimedText>;
  /** How the request was adapted to what the server accepts. */
  readonly adaptations: readonly ShownAdaptation[];
  readonly repairs: readonly ShownRepair[];
  /** Why there is no answer, or an incomplete one. */
  readonly error?: string;
}

export interface ShownAdaptation {
  readonly id: string;
  readonly sentence: string;
  /** The changed member of the request, such as `messages[3].role`; absent: the whole request. */
  readonly place?: string;
}

export interface ShownRepair {
  readonly id: string;
  readonly sentence: string;
  /** The start of the frame, in characters of the body; absent if the repair concerns the whole answer, or the position is not known. */
  readonly at?: number;
}

/** Whether a request is whole: it has ended, was answered, and its bodies are kept completely. Only then can it be judged, resent and exported. */
export function isWhole({ outcome, status, brief, cut }: RequestSummary): boolean {
  return outcome !== "open" && status !== undefined && !brief && !cut;
}

/**
 * The request and its answer as a line of a recording (`truewire record`). null: the request has not ended, was never answered, or was too
 * long to be kept completely.
 */
export function recordingOf(inspected: InspectedRequest): string | null {
  if (!isWhole(inspected)) return null;
  const { method, path, outcome, status = 0, request, response } = inspected;
  const { body } = request;
  return writeRecording({
    request: { method, path, ...(body && { body: body.text }) },
    response: {
      status,
      headers: response.headers,
      pieces: response.body.chunks.map(({ ms, text }) => ({ ms: Math.round(ms), text })),
      ...(outcome === "cancelled" && { brokeOff: true }),
    },
  });
}
