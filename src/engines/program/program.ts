import type { FinishReason, Timings, Usage } from "../../core/events.ts";

/**
 * A user's program behind the OpenAI API: anything that makes text from messages. The default export of a program's module, or a
 * value handed to `createServer` in code.
 *
 * It may be a function or a generator, synchronous or not. A function returns a string, a result or something to iterate; a
 * generator yields fragments. Every fragment is **new** text: what was yielded before is not repeated.
 */
export interface Program {
  (input: ProgramInput): ProgramReturn | Promise<ProgramReturn>;
  /**
   * What the program does beyond text, where a client asks for it. Without an offer the request is refused: an answer without what was
   * asked for would look as if there were none. `defineProgram` sets it.
   */
  readonly offers?: readonly ProgramOffer[];
}

/** `logprobs`: its text events say how likely their tokens were. */
export type ProgramOffer = "logprobs";

export type ProgramReturn = ProgramItem | AsyncIterable<ProgramItem> | Iterable<ProgramItem>;

/** What a program may yield or return: new text, an event, or a whole result. `null` and `undefined` are nothing. */
export type ProgramItem = string | ProgramEvent | ProgramResult | null | undefined | void;

/** What the client asked. Only what it set is here; defaults are the program's own. */
export interface ProgramInput {
  /** The messages in OpenAI's chat form, whatever API the client speaks. A legacy completion's prompt is one user message. */
  readonly messages: readonly ProgramMessage[];
  /** The tools in OpenAI's chat form. */
  readonly tools?: readonly ProgramTool[];
  readonly model: string;
  /**
   * All else that the client asked for, under the names of a chat request: `temperature`, `max_tokens` (the smaller one, where it sent
   * two), `seed`, `tool_choice`, …, and members that only this program knows. `stream` and `stream_options` are not among them.
   */
  readonly options: Readonly<Record<string, unknown>>;
  /** The schema of the answer, when the client asked for structured output (`response_format: json_schema`). */
  readonly responseSchema?: { readonly name: string; readonly schema: unknown; readonly strict: boolean };
  /** Aborted when the client has left. */
  readonly signal: AbortSignal;
  readonly request: {
    /** As in the `x-request-id` header. */
    readonly id: string;
    /** Whether the client asked for a stream; the program need not care. */
    readonly stream: boolean;
    /** Which of the request's choices this run makes, from 0. */
    readonly choice: number;
  };
}

export interface ProgramMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly [member: string]: unknown;
}

export interface ProgramTool {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** A piece of an answer other than text. Calls are numbered by their order; an id is made where none is given. */
export type ProgramEvent =
  | {
      readonly type: "text";
      readonly text: string;
      /** Of the tokens that the text consists of, in order. Sent where the client asked for logprobs. */
      readonly logprobs?: readonly ProgramLogprob[];
    }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "refusal"; readonly text: string }
  /** A whole call. */
  | { readonly type: "tool-call"; readonly id?: string; readonly name: string; readonly arguments?: string | object }
  /** A call in pieces: start, any number of deltas, end. The next item that is no delta ends it, too. */
  | { readonly type: "tool-call-start"; readonly id?: string; readonly name: string }
  | { readonly type: "tool-call-delta"; readonly arguments: string }
  | { readonly type: "tool-call-end" }
  | { readonly type: "usage"; readonly usage: Usage; readonly timings?: Timings }
  /** Members for the answer beyond OpenAI's; passed on where configuration allows. */
  | { readonly type: "extra"; readonly value: Readonly<Record<string, unknown>> }
  | { readonly type: "finish"; readonly reason: FinishReason };

export interface ProgramLogprob {
  readonly token: string;
  /** Natural logarithm of the token's probability. */
  readonly logprob: number;
  /** The most likely tokens at this place, best first. */
  readonly top?: readonly { readonly token: string; readonly logprob: number }[];
}

/** A whole answer. As an item of a generator it adds to what was yielded before. */
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

/**
 * Gives a program its types, and says what it offers beyond text; returns it.
 *
 * @example
 * import { defineProgram } from "truewire";
 *
 * const echo = defineProgram(async function* ({ messages }) {
 *   for (const { content } of messages) yield String(content);
 * });
 * for await (const text of echo({ messages: [{ role: "user", content: "Hi" }] })) console.log(text);
 * // → Hi
 */
export function defineProgram<P extends Program>(program: P, offers: readonly ProgramOffer[] = []): P {
  return offers.length === 0 ? program : Object.assign(program, { offers });
}

/**
 * Thrown by a program for a request that it cannot serve: the client gets this status and message instead of a 500. Clients try again
 * after 408, 409, 429 and any status from 500 on. Recognised by its name, so that a program may bring its own copy of this package.
 *
 * @example
 * import { RequestError } from "truewire";
 *
 * const error = new RequestError("One question at a time, please.", { param: "messages" });
 * console.log(error.status, error.param);
 * // → 400 messages
 */
export class RequestError extends Error {
  readonly status: number;
  readonly param: string | null;
  readonly code: string | null;

  constructor(message: string, options: { status?: number; param?: string; code?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RequestError";
    this.status = options.status ?? 400;
    this.param = options.param ?? null;
    this.code = options.code ?? null;
  }
}
