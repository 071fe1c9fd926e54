import type { EmbeddingRequest } from "../core/engine.ts";
import type { GenerationEnd, GenerationEvent } from "../core/events.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { NoteAdaptation, RequestBody, ServerProfile } from "./adapt/server-profile.ts";
import type { RepairLog } from "./tolerant/repairs.ts";
import { isObject } from "../core/json.ts";

/** One API of upstreams: writes requests and reads answers. */
export interface SourcePort {
  /** Also the name of its dialect: a request with JSON of the same dialect is forwarded with its unknown members. */
  readonly name: string;
  /** The path of its model list, with a query for all models; default `/models`. */
  readonly modelsPath?: string;
  /** Its answers have one choice: several choices become several requests. */
  readonly singleChoice?: boolean;
  /** Its servers process a prompt for later requests, and generate nothing, if the request says so. */
  readonly prewarms?: boolean;
  /** The path below the base URL. */
  readonly path: SourcePath;
  /** What its servers accept where neither the server is known nor the configuration says it. */
  readonly profile?: ServerProfile;
  /** The headers for authentication, in lower case. `key`: undefined without a key. */
  headers(key: string | undefined): Readonly<Record<string, string>>;
  /** Writes the body of a request in the form that a server with this profile accepts. Calls `note` for each adaptation. */
  writeRequest(request: GenerationRequest, profile: ServerProfile, note?: NoteAdaptation): RequestBody;
  /** Rewrites a finished body, just before it is sent, in a platform's form. Calls `note` for each adaptation. */
  rewrite?(body: RequestBody, profile: ServerProfile, note: NoteAdaptation): RequestBody;
  /** The members that limit the length of an answer. */
  readonly answerLimit: SourceAnswerLimit;
  /** Counts the tokens of a prompt, if the API has a path for it. */
  readonly tokenCount?: SourceTokenCount;
  /** The path that makes fewer items of a conversation, if the API has one. Its requests are those for an answer. */
  readonly compactPath?: string;
  /** Makes embeddings; default: as OpenAI's API does. */
  readonly embeddings?: SourceEmbeddings;
  /** Its streams are no text: what they are, and how they are read as SSE. */
  readonly streams?: { readonly contentType: string; decoder(): ByteDecoder };
  /** Creates a reader for one answer. */
  reader(options: AnswerReaderOptions): EventReader;
}

/** Reads bytes, which may be split anywhere, as text. */
export interface ByteDecoder {
  write(bytes: Uint8Array): string;
  /** The text at the end of the input. */
  end(): string;
}

/** A path, or one that contains the model, by the server's name, and says whether the answer is streamed. */
type SourcePath = string | ((model: string, stream: boolean) => string);

export function sourcePath(path: SourcePath, model: string, stream: boolean): string {
  return typeof path === "string" ? path : path(model, stream);
}

/** The members of a request that limit the length of its answer, in tokens. */
interface SourceAnswerLimit {
  /** The first one is written if a request has none. */
  readonly members: readonly [string, ...string[]];
  /** The form of a body without a limit; "required": a limit is mandatory. */
  readonly none: "absent" | "null" | "required";
}

/** Counts the tokens of a prompt at an upstream. */
export interface SourceTokenCount {
  readonly path: SourcePath;
  writeRequest(request: GenerationRequest, profile: ServerProfile): RequestBody;
  /** The count in an answer (JSON of any shape); undefined: missing. */
  read(answer: unknown): number | undefined;
}

/** Makes embeddings at an upstream. */
interface SourceEmbeddings {
  readonly path: SourcePath;
  writeRequest(request: EmbeddingRequest, profile: ServerProfile): RequestBody;
  /** Converts an answer (JSON of any shape) to the form of OpenAI's API. */
  toOpenAi(answer: unknown): unknown;
}

export interface AnswerReaderOptions {
  /** Makes an id for a tool call without an id, or with one that is in use. */
  readonly newCallId: () => string;
  /** The client used legacy `functions`: a call ends with "function-call". Absent: as in the answer, if the source is OpenAI. */
  readonly legacyFunctions?: boolean;
  /** Calls may be in the text, for a format's reader: "tool-calls" without a call is not an error. */
  readonly callsInText?: boolean;
  /** Who answers, for the state that the answer contains (`TurnState.source`). Absent: not known. */
  readonly source?: string;
  /** The number of requested choices; further choices are dropped. Absent: any number, for captures. */
  readonly choices?: number;
  /** The maximum length of an event, in characters; default 16 Mi. */
  readonly frameLimit?: number;
}

/** Reads one answer, streamed or whole, into events in their legal order; the last one is `end`. */
export interface EventReader {
  push(input: string | Uint8Array): GenerationEvent[];
  /** Ends the input; `error`: it was cut off. */
  end(error?: Error): GenerationEvent[];
  /** Reads the parsed body of an answer without a stream. */
  readBody(body: object): GenerationEvent[];
  /** Ends the answer with `end`, unless it was complete. */
  abandon(end: GenerationEnd): GenerationEvent[];
  /** Every choice has finished. Usage and the end mark may follow. */
  readonly finished: boolean;
  /** The repairs of the answer. */
  readonly repairs: RepairLog;
}

/** The APIs of upstreams, by the names of their ports. */
export const sourceApis = ["chat", "responses", "messages", "ollama", "gemini"] as const;

/** Where vendors serve APIs of others, with paths and keys of their own. */
export const platforms = ["bedrock", "converse", "vertex", "azure"] as const;

export type Platform = (typeof platforms)[number];

export type SourceApi = (typeof sourceApis)[number];

/**
 * The minimum budget for reasoning in a Messages request, in tokens. Source: https://platform.claude.com/docs/en/api/messages, `thinking`.
 */
const minBudget = 1024;

/**
 * Lowers the limits on the answer's length in a request's body to `max` tokens; null removes them. Changes `body`, whose members have the
 * profile's names. A body without a limit is not changed. Returns whether a limit was lowered.
 */
export function lowerAnswerLimit(
  body: RequestBody,
  max: number | null,
  limit: SourceAnswerLimit,
  profile: ServerProfile,
): boolean {
  const names = namesOf(limit, profile).filter((name) => {
    const value = body[name];
    return typeof value === "number" && (max === null || value > max);
  });
  for (const name of names) {
    if (max !== null) body[name] = max;
    else if (limit.none === "null") body[name] = null;
    else delete body[name];
  }
  if (max !== null && names.length > 0) lowerBudget(body, max);
  return names.length > 0;
}

/** Sets the limit of a body that has none, for a server whose default is too high. Returns false if the body has one. */
export function setAnswerLimit(
  body: RequestBody,
  max: number,
  limit: SourceAnswerLimit,
  profile: ServerProfile,
): boolean {
  const names = namesOf(limit, profile);
  if (names.some((name) => typeof body[name] === "number")) return false;
  body[profile.maxTokensMember ?? names[0] ?? limit.members[0]] = max;
  return true;
}

function namesOf({ members }: SourceAnswerLimit, { rename = {} }: ServerProfile): string[] {
  return members.map((name) => rename[name] ?? name);
}

/** Reasoning is part of the answer, so its budget must be less than the limit. */
function lowerBudget(body: RequestBody, max: number): void {
  const { thinking } = body;
  if (!isObject(thinking) || typeof thinking["budget_tokens"] !== "number" || thinking["budget_tokens"] < max) return;
  const budget = Math.max(minBudget, Math.floor(max / 2));
  body["thinking"] = max > minBudget ? { ...thinking, budget_tokens: budget } : { type: "disabled" };
}
