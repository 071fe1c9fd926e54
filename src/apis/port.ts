import type { Generation } from "../core/accumulate.ts";
import type { GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Steps } from "../core/steps.ts";
import type { Profile } from "./profile.ts";
import type { HeaderReader, Voice } from "./voice.ts";

/**
 * One API that generates, as the server sees it. The server routes, authenticates, times, counts and moves bytes; all that differs
 * between APIs is behind this. A new API is a folder with a port, and one line in ports.ts.
 */
export interface Port {
  /** Also the name of its dialect, where a request says whose JSON it carries. */
  readonly name: string;
  /** Where it takes requests, below the base URL: `/chat/completions`. */
  readonly path: string;
  readonly voice: Voice;
  /** What it does, as OpenTelemetry's `gen_ai.operation.name` has it; default `chat`. */
  readonly operation?: string;

  /**
   * Reads and validates a request body (parsed JSON of any shape), in steps. Throws `FailureError`, with the full path as `param`, for everything
   * that the API refuses or that cannot be honoured.
   */
  readRequest(body: unknown, requestId: string, options: ReadOptions): Steps<ReadRequest>;

  /** How it counts the tokens of a prompt, where it has a way to ask for that. */
  readonly tokenCounter?: TokenCounter;

  /** A path that its clients ask, without a key, to learn whether anybody is there: any 200 will do. */
  readonly probePath?: string;

  /** The headers of a streamed answer that its form decides. */
  streamHeaders(profile: Profile): Readonly<Record<string, string>>;
}

/** The part of an API that counts the tokens of a prompt. */
export interface TokenCounter {
  /** Below the base URL. */
  readonly path: string;
  /** Reads and validates a request's body, as `Port.readRequest`. */
  readRequest(body: unknown, requestId: string, options: ReadOptions): Steps<GenerationRequest>;
  /** The body of the answer. */
  write(tokens: number): string;
}

export interface ReadOptions {
  /**
   * Default `lean`. Profile `exact` also refuses what the vendor does but no other server: more than four stop strings, a strict schema
   * that allows additional properties, an empty list of tools (docs/parameters.md tells all).
   */
  readonly profile?: Profile;
  /**
   * The engine sends the request on to another server as it came, so parameters that are refused here go along in `extra`, for that
   * server to judge. Default false.
   */
  readonly forwards?: boolean;
  /** The request's headers, for APIs that judge them. */
  readonly header?: HeaderReader;
}

/** A request, and how its answer is written. What it asked about the form of the answer stays inside. */
export interface ReadRequest {
  readonly request: GenerationRequest;
  /** What was accepted and ignored, or looks like a mistake; for the log. */
  readonly warnings: readonly string[];
  /** The client only prepares for what it will ask: the answer is empty, and no engine is asked. */
  readonly preparesOnly?: boolean;
  /** A writer for the streamed answer. */
  streamWriter(context: AnswerContext): StreamWriter;
  /** The body of the answer without a stream; `generation.end` is "done". */
  writeResponse(generation: Generation, context: AnswerContext): string;
}

/** What the server adds: time, chance, configuration. Writers are otherwise pure. */
export interface AnswerContext {
  readonly profile: Profile;
  /** Unix time in seconds. */
  readonly created: number;
  /** The same while the answer is written, for APIs that tell when each part of it began or ended; default: `created`. */
  readonly now?: () => number;
  /**
   * The model id to show. Profile `exact` shows the source's instead where that is a dated form of it (`gpt-4o-mini` →
   * `gpt-4o-mini-2024-07-18`).
   */
  readonly model: string;
  /** Model settings that change the form of an answer. */
  readonly settings: AnswerSettings;
  /** Uniform in [0, 1); for ids and obfuscation. */
  readonly random: () => number;
}

export interface AnswerSettings {
  readonly systemFingerprint?: string | null;
  /** Profile `exact`: what `service_tier` says where the source says nothing; default "default". */
  readonly serviceTier?: string;
  /** Profile `exact`: whether choices have a `logprobs` key when nobody asked for log probabilities; default: by the model's class. */
  readonly logprobsKey?: boolean;
  /** Names of the members that carry reasoning; default: `reasoning_content` alone. */
  readonly reasoningFields?: readonly ("reasoning_content" | "reasoning")[];
  /** Pass members of `extra` events on: all, none, or those named. Default none. */
  readonly passExtra?: boolean | readonly string[];
}

/** Turns batches of events into the bytes of one SSE answer. Keeps state; never does I/O. */
export interface StreamWriter {
  /** The text to send for a batch; "" when the batch shows nothing. After `end` it is complete, the end mark included. */
  write(events: readonly GenerationEvent[]): string;

  /**
   * Opens the answer early (the hold time is over) with what `write` then does not repeat. "" where there is nothing to open with, or
   * the answer is open.
   */
  open(): string;

  /** What keeps proxies and clients from cutting a silent connection. */
  keepAlive(): string;
}
