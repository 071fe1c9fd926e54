import { exact, lean, profileNamed } from "../../wire/apis/profile.ts";
import { type PlatformPath, platformPath } from "../../wire/apis/messages/platforms.ts";
import { geminiPath } from "../../wire/apis/gemini/port.ts";
import type { Profile } from "../../wire/apis/profile.ts";
import type { StreamWriter } from "../../wire/apis/port.ts";
import { unsupportedEnumValue } from "../../wire/apis/request/refusals.ts";
import { FailureError } from "../../wire/core/failure.ts";
import type { Store } from "../kv/store.ts";
import type { BodyLease } from "./body-budget.ts";
import type { Client } from "./keys/key-ring.ts";

/**
 * One HTTP request and its answer, over node:http (node-exchange.ts), the web's `fetch` (fetch-exchange.ts) or a message of a WebSocket
 * (web-sockets.ts). The rest of the server uses only this interface, and no Node built-in.
 */
export interface HttpExchange extends AnswerSink {
  /** Upper case. */
  readonly method: string;
  /** Percent-encoded as received, without the query. */
  readonly path: string;
  /** The names of the query parameters, decoded, each once. */
  queryNames(): readonly string[];
  /** The first value of a query parameter, decoded. */
  query(name: string): string | undefined;
  /** All values of a query parameter, decoded. */
  queries(name: string): readonly string[];
  /** A request header by its lower-case name; several of one name are joined by ", ". */
  header(name: string): string | undefined;
  /** All request headers as received, in their order. */
  headers(): readonly (readonly [name: string, value: string])[];
  /** The body as a framework (`express.json()`) has already parsed it. */
  readonly parsedBody?: unknown;
  /** The bytes of `parsedBody`, if they are known. */
  readonly parsedBytes?: Uint8Array;
  /**
   * Reads the body. Rejects with 413 beyond `limit` bytes, with `ClientGone` if the client leaves while sending, and with 503 or 408 if
   * the budget of `lease` is used up.
   */
  readBody(limit: number, lease: BodyLease): Promise<Uint8Array>;
  /** The bytes of both bodies, for a path that is passed on; absent if the exchange is a message of a connection. */
  readonly bytes?: ExchangeBytes;
  /** Present if the body is a message of a connection: converts it to a request body. Throws `FailureError`. */
  readMessage?(body: unknown): unknown;
  /** Called with the writer of a streamed answer, before anything is written (`SocketRequest.answering`). Throws `FailureError`. */
  answering?(writer: StreamWriter, hasLanes: boolean): void;
  /** Present if the client sends further requests over the same connection: a store that ends with the connection. */
  readonly connectionStore?: Store;
  /** Present if the server itself sends the request: a line of a batch. */
  readonly ofBatch?: LineOfBatch;
  /** Whether the connection comes from this machine; absent if that is not known. */
  readonly isFromLoopback?: boolean;
}

/** For whom the server sends a line of a batch. */
export interface LineOfBatch {
  /** The id of the batch. */
  readonly id: string;
  /** The client of the batch; it needs no key. undefined: the server's clients have none. */
  readonly client: Client | undefined;
  /** Its owner in stores. */
  readonly owner: string;
}

/** The bodies of an exchange as they arrive, and as they are. */
export interface ExchangeBytes {
  /** The query as received, with its `?`; "" for a request without one. */
  readonly search: string;
  /** The request's body; undefined if it has none. The iteration throws 413 beyond `limit` bytes, and `ClientGone` if the client leaves. */
  read(limit: number): AsyncIterable<Uint8Array> | undefined;
  /** Sends a chunk of the answer that `open` began; the same promise as of `write`. */
  write(bytes: Uint8Array): Promise<void> | undefined;
}

/** What an answer is written to. */
export interface AnswerSink {
  /** Whether the client has left before its answer was complete. */
  readonly departure: Departure;
  /** Sends a complete answer. */
  send(status: number, headers: HeaderFields, body: string): void;
  /** Sends the status and headers of a streamed answer. */
  open(status: number, headers: HeaderFields): void;
  /**
   * Sends a chunk of a streamed answer. Returns a promise if the reader is slow: wait for it before the next chunk. It also resolves when
   * the client leaves or is cut off.
   */
  write(text: string): Promise<void> | undefined;
  /** Sends the last chunk and ends the answer. */
  end(text: string): void;
  /** Present if chunks of a stream are sent in another form than the API writes. Called once for each chunk, before `write` or `end`. */
  format?(text: string): string;
  /** Closes the connection to a reader that is too slow. The client counts as having left. */
  cut(): void;
}

/** Header fields by their lower-case names. */
export type HeaderFields = Readonly<Record<string, string>>;

/** Removes the base path, if the path begins with it. */
export function withoutBase(path: string, base: string): string {
  return base !== "" && path.startsWith(base) ? path.slice(base.length) || "/" : path;
}

/**
 * Normalizes a path to the form that routes have: without `/v1`, doubled slashes and a trailing slash, which some clients send, and without
 * the model that some APIs have in their paths (`pathMembers`).
 */
export function plainPath(path: string): string {
  const single = pathMembers(path.includes("//") ? path.replace(/\/{2,}/g, "/") : path).path;
  const plain = single.startsWith("/v1/") || single === "/v1" ? single.slice("/v1".length) : single;
  return plain.endsWith("/") ? plain.slice(0, -1) : plain;
}

/**
 * Separates the members of a request that its path contains from the path of the API: the model in the paths of Gemini's API, of Azure's, and
 * of the platforms with Anthropic's, and whether the answer is streamed. undefined: the path contains none.
 */
export function pathMembers(path: string): PlatformPath & { readonly isOfPlatform?: boolean } {
  const ofPlatform = path.startsWith("/model/") || path.includes("/publishers/") ? platformPath(path) : undefined;
  if (ofPlatform) {
    const { members } = ofPlatform;
    const decoded = members && { members: { ...members, model: decodedSegment(members.model) } };
    return { ...ofPlatform, ...decoded, isOfPlatform: true };
  }
  const gemini = path.startsWith("/v1") ? geminiPath(path) : undefined;
  if (gemini) {
    const { model, stream } = gemini;
    return { path: gemini.path, members: { model: decodedSegment(model), ...(stream && { stream }) } };
  }
  const { path: plain, deployment } = azurePath(path);
  return deployment === undefined ? { path: plain } : { path: plain, members: { model: decodedSegment(deployment) } };
}

/** Decodes percent-encoding; returns malformed text unchanged. */
export function decodedSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Separates the deployment of one of Azure's paths from the path of the API: `/openai/deployments/NAME/chat/completions`, `/openai/responses`,
 * `/openai/v1/responses`. A deployment is a model here; its name stays encoded, and may have slashes. Source:
 * https://learn.microsoft.com/azure/ai-foundry/openai/reference, and LiteLLM's proxy, which also has them below `/v1` and at the root.
 */
function azurePath(path: string): { readonly path: string; readonly deployment?: string } {
  const below = path.startsWith("/openai/") ? path.slice("/openai".length) : path;
  const start = ["/deployments/", "/v1/deployments/"].find((prefix) => below.startsWith(prefix))?.length;
  if (start === undefined) return { path: below };
  const whole = below.endsWith("/") ? below.slice(0, -1) : below;
  const named = deploymentPaths.find((name) => whole.endsWith(name) && whole.length > start + name.length);
  return named === undefined
    ? { path: below }
    : { path: named, deployment: whole.slice(start, whole.length - named.length) };
}

/** The paths below a deployment, a longer one before its own end. */
const deploymentPaths = [
  "/chat/completions",
  "/completions",
  "/embeddings",
  "/responses",
  "/audio/transcriptions",
  "/audio/translations",
];

/** The header with which a client chooses the profile of its answer. Precedence: header, model, server. */
export const profileHeader = "X-Truewire-Wire";

/** The header with which a client asks for a stream that it can resume (`makeResumable`). */
export const resumeHeader = "x-truewire-resume";

/**
 * The profile in the header of a request; undefined without that header. Throws `FailureError` 400 for an unknown profile: a client that
 * requests one profile and receives another would not notice.
 */
export function requestedProfile(exchange: HttpExchange): Profile | undefined {
  const value = exchange.header(profileHeader.toLowerCase());
  if (value === undefined) return undefined;
  const profile = profileNamed(value.trim());
  if (profile) return profile;
  const { failure } = unsupportedEnumValue(profileHeader, value, [lean.name, exact.name]);
  throw new FailureError({ ...failure, message: `Invalid header '${profileHeader}'. ${failure.message}` });
}

/** Thrown if the client leaves while its request is read: no answer is sent. */
export class ClientGone extends Error {
  constructor(options?: ErrorOptions) {
    super("The client closed the connection while sending its request.", options);
    this.name = "ClientGone";
  }
}

/** Whether a client has left before its answer was complete: as a flag, for one listener, and as a signal. */
export class Departure {
  #happened = false;
  #controller: AbortController | undefined;
  #listener: (() => void) | undefined;

  get happened(): boolean {
    return this.#happened;
  }

  /** Created on first use: in Node, creating an AbortSignal takes longer than reading a request. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#happened) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Calls `listener` when the client leaves, unless it has left already; null removes the listener. */
  listen(listener: (() => void) | null): void {
    this.#listener = listener ?? undefined;
  }

  /** Called when the client has left. */
  happen(): void {
    if (this.#happened) return;
    this.#happened = true;
    this.#controller?.abort();
    this.#listener?.();
  }
}
