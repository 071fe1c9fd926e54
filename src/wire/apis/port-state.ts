import type { FailureError } from "../core/failure.ts";
import type { JsonObject } from "../core/json.ts";
import type { GenerationRequest } from "../core/request.ts";
import type { Steps } from "../core/steps.ts";
import type { AnswerContext, Port, ReadOptions, ReadRequest, StreamWriter } from "./port.ts";
import type { Profile } from "./profile.ts";
import type { TurnSeal } from "./turn-seal.ts";

/** A port with its optional state and WebSocket. */
export type ServedPort = Port & { readonly state?: PortState; readonly socket?: PortSocket };

/**
 * The state of an API that stores its answers: for requests that refer to earlier ones, for paths that return them, and for answers that
 * are generated without a client. The server supplies the store, the clock and the connections; the API decides what is stored under
 * which keys.
 */
export interface PortState {
  /** Whether a request needs the state; absent: every request does. Others are read by `Port.readRequest`. `body`: JSON of any shape. */
  isNeeded?(body: unknown, options: ReadOptions): boolean;
  /** Like `Port.readRequest`, for a request that may refer to stored texts. Rejects with `FailureError`. */
  readRequest(
    body: unknown,
    requestId: string,
    options: ReadOptions,
    keyspaces: Keyspaces,
    inTurns: InTurns,
  ): Promise<StorableRequest>;
  /** Further paths of the API. */
  readonly routes: readonly PortRoute[];
}

/** Runs a task in turns with other requests. */
export type InTurns = <T>(task: Steps<T>) => Promise<T>;

/** Texts of one client by key, invisible to other clients. Rejects if the store cannot be reached. */
export interface Keyspace {
  get(key: string): Promise<string | undefined>;
  /** A long text may be an iterable of chunks: other requests are served between them. */
  set(key: string, text: string | Iterable<string, void, undefined>): Promise<void>;
  /** Returns the text from a byte on, at which a character begins, and the size of all of it in bytes. */
  readFrom(key: string, from: number): Promise<{ readonly text: string; readonly size: number } | undefined>;
  /**
   * Adds to the end of an existing text, so that concurrent additions follow each other; if `creates` is true, also of a new one. Resolves to
   * whether the key existed.
   */
  append(key: string, text: string, creates?: boolean): Promise<boolean>;
  /** Resolves to whether the key existed. */
  delete(key: string): Promise<boolean>;
}

export interface Keyspaces {
  /** The server's store. */
  readonly stored: Keyspace;
  /** The server's memory, for texts that must not be stored. Kept while the connection is open, or for some minutes. */
  readonly temporary: Keyspace;
  /** The memory of this process. */
  readonly assembled: Assembled;
  /** `temporary` belongs to a connection on which the client sends further requests. */
  readonly ofConnection: boolean;
}

/**
 * Values that an API has assembled from the texts of one client, in the memory of this process. They may be discarded at any time, and are
 * discarded some minutes after they were first set, so that their texts are read again.
 */
export interface Assembled {
  get(key: string): object | undefined;
  /** `characters`: the approximate size of the value. */
  set(key: string, value: object, characters: number): void;
  delete(key: string): void;
  /** A text that no other call returns, in any process. */
  unique(): string;
}

export interface StorableRequest extends ReadRequest {
  /** Stores the written answer, if it is to be stored. Called when it is complete, before its end is sent. */
  store(): Promise<void>;
  /**
   * Present: the client is answered immediately, and the answer is generated without it. `processName` names this process for
   * `PortCall.hasEnded`.
   */
  detach?(context: AnswerContext, processName?: string): DetachedAnswer;
}

/** An answer without a client. */
export interface DetachedAnswer {
  readonly id: string;
  /** Has written `opening`. */
  readonly writer: StreamWriter;
  readonly opening: string;
  /** The answer for a client without a stream. */
  readonly body: string;
  /**
   * Records that the generation continues. Called before it begins, and every `beatMs`. Resolves to whether a client has cancelled it at
   * another instance.
   */
  beat(): Promise<boolean>;
  /** Stores the answer. `events`: the written text. */
  end(events: string, isCancelled: boolean): Promise<void>;
}

/** The interval of `DetachedAnswer.beat`, in milliseconds. */
export const beatMs = 10_000;

/** A detached answer that this server is generating. */
export interface DetachedRun {
  /** The events from number `from` on (default: 0), and then each new one; none if the run ended before. Throws if it breaks off. */
  events(from?: number): AsyncIterable<string>;
  /** Stops the run. Resolves when its state is stored, or when no process generates it. */
  cancel(): Promise<void>;
}

/** A path of an API below its own: `/responses/{id}/cancel`. */
export interface PortRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{id}` matches the second segment, and `{item}` the fourth. */
  readonly path: string;
  /** Rejects with `FailureError`. */
  answer(call: PortCall): Promise<PortAnswer>;
}

/** A call of such a path. */
export interface PortCall {
  readonly requestId: string;
  /** The value of `{id}`, decoded; "" if the path has none. */
  readonly id: string;
  /** The value of `{item}`, decoded; "" if the path has none. */
  readonly item: string;
  /** A member of the query. */
  query(name: string): string | undefined;
  /** All values of a member of the query. */
  queries(name: string): readonly string[];
  /** The server's profile, until `model` sets that of a model. */
  readonly profile: Profile;
  readonly keyspaces: Keyspaces;
  readonly inTurns: InTurns;
  /** Opens what this server has sealed for the client. */
  readonly turnSeal: TurnSeal;
  /** Unix time in seconds. */
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** The body as JSON. `ifEmpty`: the value of an empty body; absent: an empty body is refused. */
  readBody(ifEmpty?: unknown): Promise<unknown>;
  /** The model of this name. Throws if there is no such model. */
  model(name: string): CalledModel;
  /** The options for reading a body, by its model. */
  readOptions(body: unknown): ReadOptions;
  /** The client's run of this id, if this server is generating it. */
  run(id: string): DetachedRun | undefined;
  /** Whether the process of this name is known to have ended. false: running or unknown. */
  hasEnded(processName: string): boolean;
  /** Resolves after `ms` milliseconds, or when the client disconnects; to whether it is still connected. */
  pause(ms: number): Promise<boolean>;
}

export interface CalledModel {
  /** The number of tokens of a request's prompt; an estimate if the engine cannot count them. Rejects with `FailureError`. */
  countTokens(request: GenerationRequest): Promise<number>;
  /** The conversation in fewer items, from an upstream of the request's API; undefined: it cannot. Rejects with `FailureError`. */
  compact(request: GenerationRequest): Promise<JsonObject | undefined>;
}

/** A whole answer, or a stream of events. Status 200. */
export type PortAnswer = { readonly body: string } | { readonly events: AsyncIterable<string> };

/**
 * An API over WebSocket: each message is a request, and each event of its stream is returned as a message. The server parses JSON, runs the
 * requests of one lane one after the other and those of different lanes in parallel, and omits what only HTTP streams need.
 */
export interface PortSocket {
  /** The maximum number of requests of one connection that run; further ones wait. */
  readonly maxRunning: number;
  /** The maximum number of lanes with a name in one connection. */
  readonly maxLanes: number;
  /** Opens the API's side of a connection. `random` is uniform in [0, 1). */
  connect(random: () => number): SocketConnection;
}

/** The API's side of one connection. Has state, but does no I/O. Texts of events have the form of an SSE stream. */
export interface SocketConnection {
  /**
   * Receives a message (parsed JSON of any shape) of `bytes` bytes. Returns the events that answer it, or the request that it contains.
   * Does not throw: an invalid message is a request with a refusal, or one whose `readBody` throws.
   */
  receive(message: unknown, bytes: number): string | SocketRequest;
  /** Why a request cannot open another lane. */
  readonly tooManyLanes: FailureError;
  /** The event for a connection that has reached its maximum duration. */
  readonly expired: string;
}

/** One request of a connection. */
export interface SocketRequest {
  /** Requests of the same lane run in order; `undefined` is a lane, too. */
  readonly lane: string | undefined;
  /** Set: the request is refused, without waiting for its lane. */
  refusal?: FailureError;
  /** Returns the body of the streaming request. Called when the request runs. Throws `FailureError`. */
  readBody(): unknown;
  /**
   * Called with the writer of the answer, before anything is written. `hasLanes`: the model runs several requests of a connection, and can
   * be steered. Throws `FailureError`.
   */
  answering(writer: StreamWriter, hasLanes: boolean): void;
  /** Returns the events for a failure before the answer began. `body`: the JSON of the HTTP answer. */
  failed(status: number, body: string): string;
  /** Called once, when the request has ended. */
  ended(): SocketRequestEnd;
}

export interface SocketRequestEnd {
  /** Events that follow the answer; may be "". */
  readonly events: string;
  /** The keys of a text in the connection's store that later requests must not find. */
  readonly evicted?: readonly string[];
  /** A request that runs next in this lane, before those that wait, and its message. */
  readonly next?: { readonly request: SocketRequest; readonly message: unknown };
}
