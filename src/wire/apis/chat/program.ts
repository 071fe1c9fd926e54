import type { FinishReason, Timings, Usage } from "../../core/events.ts";
import type { ProgramMessage, ProgramOptions, ProgramTool } from "./request-types.ts";

/*
 * The types of programs: a user's functions, which get requests in the form of chat requests, from clients of all APIs.
 */

/**
 * A user's program: anything that makes text from messages. It is the default export of a module, or a value passed to `createServer`.
 *
 * It is a function or a generator, synchronous or asynchronous. A function returns a string, a result or an iterable; a generator yields
 * fragments. Every fragment is **new** text, without the text before it.
 */
export interface Program {
  (input: ProgramInput): ProgramReturn | Promise<ProgramReturn>;
  /**
   * Features beyond text. A request for a feature that is not offered is refused, since an answer without it would be wrong.
   * `defineProgram` sets it.
   */
  readonly offers?: readonly ProgramOffer[];
}

/** `logprobs`: text events have log probabilities. */
export type ProgramOffer = "logprobs";

export type ProgramReturn = ProgramItem | AsyncIterable<ProgramItem> | Iterable<ProgramItem>;

/** What a program may yield or return: new text, an event, or a whole result. `null` and `undefined` are ignored. */
export type ProgramItem = string | ProgramEvent | ProgramResult | null | undefined | void;

/** The client's request. Contains only what the client set; the program has its own defaults. */
export interface ProgramInput {
  /** The messages in the form of OpenAI's chat API, for clients of all APIs. A legacy completion's prompt is one user message. */
  readonly messages: readonly ProgramMessage[];
  /** The tools in the form of OpenAI's chat API. */
  readonly tools?: readonly ProgramTool[];
  readonly model: string;
  /**
   * All other parameters, under the names of a chat request: `temperature`, `max_tokens` (the smaller one, if the client sent two),
   * `seed`, `tool_choice`, …, and unknown members. `stream` and `stream_options` are not included.
   */
  readonly options: Readonly<ProgramOptions>;
  /** The schema of the answer, if the client requested structured output (`response_format: json_schema`). */
  readonly responseSchema?: { readonly name: string; readonly schema: unknown; readonly strict: boolean };
  /** Aborted when the client has disconnected. */
  readonly signal: AbortSignal;
  readonly request: {
    /** As in the `x-request-id` header. */
    readonly id: string;
    /** Whether the client requested a stream. A program may ignore this. */
    readonly stream: boolean;
    /** The number of the choice that this run makes, from 0. */
    readonly choice: number;
  };
}

/** A part of an answer. Calls are numbered in their order. A call without an id gets one. */
export type ProgramEvent =
  | {
      readonly type: "text";
      readonly text: string;
      /** For the tokens that make up the text, in order. Sent if the client requested log probabilities. */
      readonly logprobs?: readonly ProgramLogprob[];
    }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "refusal"; readonly text: string }
  /** A whole call. */
  | { readonly type: "tool-call"; readonly id?: string; readonly name: string; readonly arguments?: string | object }
  /** A streamed call: start, any number of deltas, end. Any other item also ends it. */
  | { readonly type: "tool-call-start"; readonly id?: string; readonly name: string }
  | { readonly type: "tool-call-delta"; readonly arguments: string }
  | { readonly type: "tool-call-end" }
  | { readonly type: "usage"; readonly usage: Usage; readonly timings?: Timings }
  /** Members of the answer beyond OpenAI's. Sent if the configuration allows it. */
  | { readonly type: "extra"; readonly value: Readonly<Record<string, unknown>> }
  | { readonly type: "finish"; readonly reason: FinishReason };

export interface ProgramLogprob {
  readonly token: string;
  /** Natural logarithm of the token's probability. */
  readonly logprob: number;
  /** The most likely tokens at this place, best first. */
  readonly top?: readonly { readonly token: string; readonly logprob: number }[];
}

/** A whole answer. As an item of a generator it is added to the items before. */
export interface ProgramResult {
  readonly type?: undefined;
  readonly text?: string | null;
  readonly reasoning?: string | null;
  readonly refusal?: string | null;
  /** A structured answer; sent as its JSON text. */
  readonly object?: unknown;
  readonly toolCalls?: readonly { readonly id?: string; readonly name: string; readonly arguments?: string | object }[];
  readonly finishReason?: FinishReason;
  readonly usage?: Usage;
}
