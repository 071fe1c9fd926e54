import type { Generation } from "../core/accumulate.ts";
import type { ModelInfo } from "../core/engine.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { HostedTool } from "../core/hosted-tool.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Steps } from "../core/steps.ts";
import type { Profile } from "./profile.ts";
import type { TurnSeal } from "./turn-seal.ts";
import type { HeaderReader, ApiErrorFormat } from "./api-error-format.ts";

/**
 * One API that generates, for the server. The server routes, authenticates, measures and transfers; everything that differs between APIs is
 * in the port. A new API is a folder with a port, and one line in ports.ts.
 */
export interface Port {
  /** Also the name of the dialect in `Passthrough`. */
  readonly name: string;
  /** The path below the base URL: `/chat/completions`. */
  readonly path: string;
  readonly errorFormat: ApiErrorFormat;
  /** OpenTelemetry's `gen_ai.operation.name`; default `chat`. */
  readonly operation?: string;
  /** "form": requests are `multipart/form-data`, and `readRequest` gets an object of texts, lists of texts and files. Default: JSON. */
  readonly bodyType?: "form";

  /** The vendor looks for the model before it reads the request. */
  readonly findsModelFirst?: boolean;

  /**
   * Reads and validates a request body (parsed JSON of any shape), in steps. Throws `FailureError`, with the full path as `param`, for
   * parameters that the API refuses or this server does not support.
   */
  readRequest(body: unknown, requestId: string, options: ReadOptions): Steps<ReadRequest>;

  /** Throws `FailureError` for what the API refuses of a model that is known not to support it. `others`: all models of the client. */
  checkModel?(request: GenerationRequest, info: ModelInfo, others: () => readonly ModelInfo[]): void;

  /** Counts the tokens of a prompt, if the API has a path for it. */
  readonly tokenCounter?: TokenCounter;

  /** A path that clients request without a key to check whether the server is available. Any 200 is accepted. */
  readonly probePath?: string;

  /** The content type of an answer that is not streamed; default `application/json`. */
  readonly contentType?: string;

  /** The headers of a streamed answer in a profile. */
  streamHeaders(profile: Profile): Readonly<Record<string, string>>;
}

/** Counts the tokens of a prompt for an API. */
export interface TokenCounter {
  /** Below the base URL. */
  readonly path: string;
  /** Like `Port.readRequest`. */
  readRequest(body: unknown, requestId: string, options: ReadOptions): Steps<CountedRequest>;
  /** The body of the answer. `originalTokens`: those of the prompt before its edits, if the request has any. */
  write(tokens: number, originalTokens?: number): string;
}

/** A request whose prompt is counted, before the edits that the client asks for. */
export type CountedRequest = Pick<ReadRequest, "request" | "editPrompt">;

export interface ReadOptions {
  /**
   * Default `lean`. Profile `exact` also refuses what only the vendor refuses: more than four stop strings, a strict schema that allows
   * additional properties, an empty list of tools (all are in docs/parameters.md).
   */
  readonly profile?: Profile;
  /**
   * The engine forwards the request to another server, so parameters that are not supported here are put into `extra`, for that server to
   * accept or refuse. Default false.
   */
  readonly forwards?: boolean;
  /** Opens what this server has sealed for the client; default: `openSeal`. */
  readonly turnSeal?: TurnSeal;
  /** The vendor's model whose refusals the model has, too (`standsFor`). */
  readonly standsFor?: string | undefined;
  /**
   * Whether the server runs a hosted tool. Throws `FailureError` for a tool that it refuses. Absent: hosted tools are left out. Not called
   * for a request that is forwarded.
   */
  readonly runs?: ((tool: HostedTool) => boolean) | undefined;
  /** The names of the hosted tools that the configuration has, and the client may use. */
  readonly hostedNames?: readonly string[] | undefined;
  /** The request's headers, for APIs that check them. */
  readonly header?: HeaderReader;
  /** The members of the request's query, for APIs that have any. */
  readonly query?: HeaderReader;
}

/**
 * What a request prepares for later ones. "cache": the prompt is in the model's prompt cache. "state": the answer can be continued; the
 * prompt is put into the cache where no other server has to be asked, and the answer counts no tokens.
 */
export type PreparesOnly = "state" | "cache";

/** A parsed request, with the writers of its answer in the requested form. */
export interface ReadRequest {
  readonly request: GenerationRequest;
  /** Parameters that were ignored, and probable mistakes, for the log. */
  readonly warnings: readonly string[];
  /** The request prepares later ones: its answer is empty. */
  readonly preparesOnly?: PreparesOnly;
  /**
   * How long a local model stays loaded after the answer, in milliseconds; `Infinity`: until another one needs its memory. Absent: as
   * configured.
   */
  readonly keepLoadedMs?: number;
  /** The request generates nothing, and does not load the model. */
  readonly generatesNothing?: boolean;
  /**
   * Resolves with the request after the edits of its prompt that the client asks for. `countTokens`: the number of tokens of a request's
   * prompt. Rejects with `FailureError` if this server cannot do them. Absent: the prompt stays as it is.
   */
  editPrompt?(countTokens: (request: GenerationRequest) => Promise<number>): Promise<GenerationRequest>;
  /** A writer for the streamed answer. */
  streamWriter(context: AnswerContext): StreamWriter;
  /** The content type of an answer that is not streamed; default: the port's. */
  readonly contentType?: string;
  /** The headers of a streamed answer in a profile; default: the port's. */
  readonly streamHeaders?: Port["streamHeaders"];
  /** The body of the answer without a stream; `generation.end` is "done". */
  writeResponse(generation: Generation, context: AnswerContext): string;
}

/** Time, randomness and configuration for the writers, which are otherwise pure. */
export interface AnswerContext {
  readonly profile: Profile;
  /** Unix time in seconds. */
  readonly created: number;
  /** The current Unix time in seconds, for APIs that send times of parts of the answer; default: `created`. */
  readonly now?: () => number;
  /** Unix time in milliseconds with fractions, for APIs that send durations: when the request was received, and the current time. */
  readonly clock?: { readonly beganMs: number; nowMs(): number };
  /**
   * The model id in the answer. Profile `exact` uses the source's if it is a dated form of it (`gpt-4o-mini` →
   * `gpt-4o-mini-2024-07-18`).
   */
  readonly model: string;
  /** Model settings that change the form of an answer. */
  readonly settings: AnswerSettings;
  /** Seals what the client is to send back; default: `openSeal`. */
  readonly turnSeal?: TurnSeal;
  /** Uniform in [0, 1); for ids and obfuscation. */
  readonly random: () => number;
  /** Called with the answer's id, unless it is the source's. */
  readonly onId?: (id: string) => void;
}

export interface AnswerSettings {
  readonly systemFingerprint?: string | null;
  /** Profile `exact`: `service_tier` if the source sends none; default "default". */
  readonly serviceTier?: string;
  /** The vendor's model that this one represents: profile `exact` refuses what that model refuses. */
  readonly standsFor?: string;
  /** Profile `exact`: whether choices have a `logprobs` key if log probabilities were not requested; default: by the model's class. */
  readonly logprobsKey?: boolean;
  /** The members that contain reasoning; default: `reasoning_content`. */
  readonly reasoningFields?: readonly ("reasoning_content" | "reasoning")[];
  /** Whether to send members of `extra` events: all, none, or the named ones. Default none. */
  readonly passExtra?: boolean | readonly string[];
}

/** Writes batches of events as the text of one SSE answer. Has state, but does no I/O. */
export interface StreamWriter {
  /** The text for a batch; "" if there is nothing to send. After the `end` event the answer is complete, with its end mark. */
  write(events: readonly GenerationEvent[]): string;

  /**
   * Opens the answer before the first event (the hold time is over). `write` does not repeat this text. "" if the API has no opening, or
   * the answer is open.
   */
  open(): string;

  /** The text that keeps a silent connection open. */
  keepAlive(): string;

  /** The answer is complete although the generation is not: the server ends the generation. */
  readonly isComplete?: boolean;
}
