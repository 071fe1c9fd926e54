import type { GenerationEnd, GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "./server-profile.ts";
import type { RepairLog } from "./tolerant/repairs.ts";

/** One API of a server that is asked: how a request to it is written, and how its answer is read. */
export interface SourcePort {
  /** Also the name of its dialect: a request that carries JSON of the same one goes on with what nobody here knows. */
  readonly name: string;
  /** Where it lists its models, with the query that gets them all; default `/models`. */
  readonly modelsPath?: string;
  /** It answers with one choice; several are several requests. */
  readonly singleChoice?: boolean;
  /** Below the server's base URL. */
  readonly path: string;
  /** The headers by which it knows its client, in lower case. `key`: undefined where there is none. */
  headers(key: string | undefined): Readonly<Record<string, string>>;
  /** Writes the body of a request as a server with this profile accepts it. `note` is called for each adaptation. */
  writeRequest(request: GenerationRequest, profile: ServerProfile, note?: NoteAdaptation): RequestBody;
  /** How a request limits the length of its answer. */
  readonly answerLimit: SourceAnswerLimit;
  /** How it counts the tokens of a prompt, where it has a way to ask for that. */
  readonly tokenCount?: SourceTokenCount;
  /** A reader for one answer. */
  reader(options: AnswerReaderOptions): EventReader;
}

/** How a request's body limits the length of the answer, in tokens. */
export interface SourceAnswerLimit {
  /** The members that do. The first is the one to write where a request has none. */
  readonly members: readonly [string, ...string[]];
  /** How a body says that the answer may be as long as the context allows; "required": it cannot say so. */
  readonly none: "absent" | "null" | "required";
}

/** The part of an API that counts the tokens of a prompt. */
export interface SourceTokenCount {
  readonly path: string;
  writeRequest(request: GenerationRequest, profile: ServerProfile): RequestBody;
  /** The count in an answer, which is JSON of any shape; undefined: there is none. */
  read(answer: unknown): number | undefined;
}

export interface AnswerReaderOptions {
  /** Makes an id for a tool call that has none, or one that is taken. */
  readonly newCallId: () => string;
  /** The client asked with legacy `functions`, so a call ends with "function-call". Absent: as the source does, if that is OpenAI. */
  readonly legacyFunctions?: boolean;
  /** Calls may stand in the text, for a format's reader to find: "tool-calls" without a call is then no error. */
  readonly callsInText?: boolean;
  /** How many choices were requested; what belongs to others is dropped. Absent: any number, as in a capture. */
  readonly choices?: number;
  /** The longest event, in characters; default 16 Mi. */
  readonly frameLimit?: number;
}

/** Reads one answer, streamed or whole, into events in the waist's order; the last one is `end`. */
export interface EventReader {
  push(piece: string | Uint8Array): GenerationEvent[];
  /** The input is over; `error`: it broke off. */
  end(error?: Error): GenerationEvent[];
  /** Reads a parsed body, where the answer is not streamed. */
  readBody(body: object): GenerationEvent[];
  /** Gives up: the events end with this. */
  abandon(end: GenerationEnd): GenerationEvent[];
  /** Every choice has finished; what may follow is usage and the end mark. */
  readonly finished: boolean;
  /** What was repaired so far. */
  readonly repairs: RepairLog;
}
