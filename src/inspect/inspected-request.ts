import type { CacheMiss } from "../core/cache-miss.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { InspectedPrompt } from "../core/inspection.ts";

/** What is kept of pieces that came one after another, in order. */
export interface TapeContents<T> {
  readonly pieces: readonly T[];
  /** Absent: nothing was left out. */
  readonly left_out?: LeftOut;
}

/** What came between the beginning and the end, and was not kept. */
export interface LeftOut {
  /** It came after so many of the pieces that are there. */
  readonly after: number;
  readonly pieces: number;
  /** Of their texts. */
  readonly characters: number;
}

/** How a request ended; "open": it is being answered. */
export type InspectedOutcome = "open" | "finished" | "refused" | "failed" | "cancelled";

/** One line of a list of requests. Times are in milliseconds. */
export interface RequestSummary {
  /** As in the header `x-request-id` and in the log. */
  readonly id: string;
  /** From 1, in the order of arrival. */
  readonly number: number;
  /** When it arrived, in Unix time. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  readonly outcome: InspectedOutcome;
  /** Until it ended; of an open one, until now. */
  readonly ms: number;
  /** The name of the client's key. */
  readonly key?: string;
  /** Absent for what does not generate. */
  readonly api?: string;
  /** As the client named it. */
  readonly model?: string;
  readonly stream?: boolean;
  readonly status?: number;
  /** Until the first piece of the answer came. */
  readonly first_ms?: number;
  readonly prompt_tokens?: number;
  readonly cached_tokens?: number;
  readonly completion_tokens?: number;
  /** Why the choices ended. */
  readonly finish?: string;
  /** How often other servers were asked. */
  readonly attempts?: number;
  /** What was mended in their answer, and how often. */
  readonly repairs?: Readonly<Record<string, number>>;
  readonly error?: string;
  /** Why a local model read much of the prompt again. */
  readonly cache_miss?: ShownCacheMiss;
}

export interface ShownCacheMiss extends CacheMiss {
  /** The cause in words. */
  readonly says: string;
}

/** The requests that are still there. */
export interface RequestList {
  /** The oldest first. */
  readonly requests: readonly RequestSummary[];
  /** What they take in memory, and may take, in bytes. */
  readonly bytes: number;
  readonly max_bytes: number;
  /** How many were there and had to make room. */
  readonly dropped: number;
}

/** All that is known of one request. Secrets are masked; times are in milliseconds since it arrived. */
export interface InspectedRequest extends RequestSummary {
  readonly request: {
    readonly headers: readonly Header[];
    /** As it came; absent where it was packed. */
    readonly body?: KeptText;
    /** What engines were asked, as JSON. */
    readonly understood?: KeptText;
  };
  /** In the order in which engines told them. */
  readonly prompts: readonly InspectedPrompt[];
  /** What the model wrote, markers and control tokens included, of each choice. */
  readonly written: readonly { readonly choice: number; readonly text: TapeContents<TimedText> }[];
  readonly events: TapeContents<TimedEvents>;
  readonly response: {
    readonly headers: readonly Header[];
    readonly body: TapeContents<TimedText>;
  };
  /** What other servers were asked, and what they said. */
  readonly asked: readonly AskedServer[];
}

export type Header = readonly [name: string, value: string];

/** A text, of which the end may be missing. */
export interface KeptText {
  readonly text: string;
  /** So many characters of its end were not kept. */
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

/** One attempt at another server. */
export interface AskedServer {
  readonly url: string;
  readonly ms: number;
  readonly headers: readonly Header[];
  readonly body: KeptText;
  readonly status?: number;
  readonly response_headers: readonly Header[];
  readonly response: TapeContents<TimedText>;
  readonly repairs: readonly ShownRepair[];
  /** Why there is no answer, or no more of it. */
  readonly error?: string;
}

export interface ShownRepair {
  readonly id: string;
  readonly sentence: string;
  /** Where the frame begins, in characters of the whole body; absent: it concerns the answer as a whole, or the place is not known. */
  readonly at?: number;
}
