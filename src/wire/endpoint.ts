import type { Generation } from "../generation/accumulate.ts";
import type { GenerationEvent } from "../generation/event.ts";
import type { GenerationRequest } from "../generation/request.ts";
import type { CaptureForm } from "./capture-form.ts";
import type { Profile } from "./profile.ts";

/**
 * One endpoint of the API that generates, in both directions. The server reads, asks an engine and writes through this alone, and
 * so treats chat and completions the same.
 */
export interface Endpoint {
  readonly name: "chat" | "completions";

  /**
   * Reads and validates a request body (parsed JSON of any shape). Throws `FailureError`, in OpenAI's words and with the full path
   * as `param`, for everything that OpenAI refuses or that cannot be honoured.
   */
  readRequest(body: unknown, requestId: string, options?: ReadOptions): ReadRequest;

  /** A writer for one streamed answer. */
  streamWriter(context: AnswerContext): StreamWriter;

  /** The body of a non-stream answer; `generation.end` is "done". */
  writeResponse(generation: Generation, context: AnswerContext): string;
}

export interface ReadOptions {
  /**
   * Default `lean`. Profile `openai` also refuses what OpenAI does but no other server: more than four stop strings, a strict schema
   * that allows additional properties, an empty list of tools (docs/parameters.md tells all).
   */
  readonly profile?: Profile;
  /**
   * The engine sends the request on to another server as it came, so parameters that are refused here go along in `extra`, for that
   * server to judge. Default false.
   */
  readonly forwards?: boolean;
}

export interface ReadRequest {
  readonly request: GenerationRequest;
  /** What the answer must look like, as far as the request decides it. */
  readonly asked: AskedAnswer;
  /** What was accepted and ignored, or looks like a mistake; for the log. */
  readonly warnings: readonly string[];
}

/** What a request says about the form of its answer. */
export interface AskedAnswer {
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** undefined: the profile's default. */
  readonly includeObfuscation?: boolean;
  readonly logprobs: boolean;
  /** Calls were forced by name; OpenAI then answers finish_reason "stop". */
  readonly namedToolChoice: boolean;
  /** Legacy `functions`: answer with `function_call`. */
  readonly legacyFunctions: boolean;
  /** The client asked for reasoning fields in the answer; undefined: the profile's default. */
  readonly includeReasoning?: boolean;
  readonly includeTimings: boolean;
  /** Show which stop string was hit, as `stop_str` beside the finish reason. */
  readonly includeStopString?: boolean;
  /** Legacy completions: where each prompt's answers begin, in characters, for `text_offset`; default 0. */
  readonly textOffsets?: { readonly byPrompt: readonly number[]; readonly choicesPerPrompt: number };
}

/** What the server adds: identity, time, chance. Writers are otherwise pure. */
export interface AnswerContext {
  readonly profile: Profile;
  readonly asked: AskedAnswer;
  /** The answer's id (`chatcmpl-…`, `cmpl-…`); a source's own id wins where it is in OpenAI's form, and its `created` with it. */
  readonly id: string;
  /** Unix time in seconds. */
  readonly created: number;
  /**
   * The model id to show. Profile `openai` shows the source's instead where that is a dated form of it (`gpt-4o-mini` →
   * `gpt-4o-mini-2024-07-18`).
   */
  readonly model: string;
  /** Model settings that change the form of an answer. */
  readonly settings: AnswerSettings;
  /** Uniform in [0, 1); for obfuscation. */
  readonly random: () => number;
  /** The answer was read from a capture: what of its form to keep. Absent for live answers. */
  readonly capture?: CaptureForm;
}

export interface AnswerSettings {
  readonly systemFingerprint?: string | null;
  /** Profile `openai`: what `service_tier` says where the source says nothing; default "default". */
  readonly serviceTier?: string;
  /** Profile `openai`: whether choices have a `logprobs` key when nobody asked for log probabilities; default: by the model's class. */
  readonly logprobsKey?: boolean;
  /** Names of the members that carry reasoning; default: `reasoning_content` alone. */
  readonly reasoningFields?: readonly ("reasoning_content" | "reasoning")[];
  /** Pass members of `extra` events on: all, none, or those named. Default none. */
  readonly passExtra?: boolean | readonly string[];
}

/** Turns batches of events into the bytes of one SSE answer. Keeps state per choice; never does I/O. */
export interface StreamWriter {
  /** The text to send for a batch; "" when the batch shows nothing. After `end` it is complete, `data: [DONE]` included. */
  write(events: readonly GenerationEvent[]): string;

  /**
   * Opens the answer early (the hold time is over): the role chunk of choice 0, which `write` then does not repeat; the others open
   * when they start. "" where there is nothing to open with (completions) or the answer is open.
   */
  open(): string;

  /** A comment that keeps proxies from cutting the connection. */
  keepAlive(): string;
}
