import type { GenerationRequest } from "../core/request.ts";
import type { Steps } from "../core/steps.ts";
import type { AnswerContext, Port, ReadOptions, ReadRequest, StreamWriter } from "./port.ts";
import type { PortSocket } from "./port-socket.ts";
import type { Profile } from "./profile.ts";

/** A port, as the server has it. */
export type ServedPort = Port & { readonly state?: PortState; readonly socket?: PortSocket };

/**
 * What an API needs that keeps its answers: for requests that refer to earlier ones, for paths that show them, for answers that go on
 * without their client. The server brings the store, the clock and the connections; what is kept, and under which keys, is the API's.
 */
export interface PortState {
  /** As `Port.readRequest`, for a request that may refer to what is on the shelves. Rejects with `FailureError`. */
  readRequest(
    body: unknown,
    requestId: string,
    options: ReadOptions,
    shelves: Shelves,
    inTurns: InTurns,
  ): Promise<KeptRequest>;
  /** Its further paths. */
  readonly routes: readonly PortRoute[];
}

/** Does a work in turns with others. */
export type InTurns = <T>(work: Steps<T>) => Promise<T>;

/** Texts under keys, of one client: no other client finds them. Rejects where the store cannot be reached. */
export interface Shelf {
  get(key: string): Promise<string | undefined>;
  /** A long text may be written piece by piece while it is put there: others have their turn. */
  set(key: string, text: string | Iterable<string, void, undefined>): Promise<void>;
  /** Whether there was something. */
  delete(key: string): Promise<boolean>;
}

export interface Shelves {
  /** The server's store. */
  readonly lasting: Shelf;
  /** The server's memory, for what must leave no trace: as long as the connection is there, or for some minutes. */
  readonly brief: Shelf;
  /** What this process remembers. */
  readonly assembled: Assembled;
  /** The client sends further requests by the connection that `brief` belongs to. */
  readonly ofConnection: boolean;
}

/**
 * What an API has assembled from the texts of one client, in the memory of this process. Values may be discarded at any time,
 * and are discarded some minutes after they were first set, so that their texts are read again.
 */
export interface Assembled {
  get(key: string): object | undefined;
  /** `characters`: the approximate size of the value. */
  set(key: string, value: object, characters: number): void;
  delete(key: string): void;
  /** A text that no other call returns, in any process. */
  unique(): string;
}

export interface KeptRequest extends ReadRequest {
  /** Keeps the answer that was written, where it is to be kept. Called when it is whole, before its end is sent. */
  keep(): Promise<void>;
  /**
   * Present: the client is answered immediately, and the answer is generated without it. `processName` names this process for
   * `PortCall.hasEnded`.
   */
  detach?(context: AnswerContext, processName?: string): DetachedAnswer;
}

/** An answer without a client. */
export interface DetachedAnswer {
  readonly id: string;
  /** It is open already, with `opening`. */
  readonly writer: StreamWriter;
  readonly opening: string;
  /** For a client that does not follow the stream. */
  readonly body: string;
  /**
   * Notes that it goes on; called before it begins, and every `beatMs`. Resolves to whether somebody has asked another instance to stop it.
   */
  beat(): Promise<boolean>;
  /** Keeps it. `events`: all that was written. */
  end(events: string, isCancelled: boolean): Promise<void>;
}

/** How often a detached answer tells that it goes on, in milliseconds. */
export const beatMs = 10_000;

/** A detached answer that this server is generating. */
export interface DetachedRun {
  /** The events from the first on, and then as they come; none: it was over before it could be followed. Throws where it breaks off. */
  pieces(): AsyncIterable<string>;
  /** Stops it; resolves when it is kept as it then is, or when nobody generates it any more. */
  cancel(): Promise<void>;
}

/** A path of an API below its own: `/responses/{id}/cancel`. */
export interface PortRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** `{id}` stands for one segment of any text. */
  readonly path: string;
  /** Rejects with `FailureError`. */
  answer(call: PortCall): Promise<PortAnswer>;
}

/** A call of such a path. */
export interface PortCall {
  readonly requestId: string;
  /** What stands for `{id}`, decoded; "" where the path has none. */
  readonly id: string;
  /** A member of the query; undefined: it is not there. */
  query(name: string): string | undefined;
  /** The server's form, until `model` tells that of a model. */
  readonly profile: Profile;
  readonly shelves: Shelves;
  readonly inTurns: InTurns;
  /** Unix time in seconds. */
  now(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** The body as JSON. */
  readBody(): Promise<unknown>;
  /** The model that a body asks for. Rejects where there is none of that name. */
  model(name: string): CalledModel;
  /** How a body is to be read: as its model wants it. */
  readOptions(body: unknown): ReadOptions;
  /** The client's answer of this id that this server is generating. */
  run(id: string): Promise<DetachedRun | undefined>;
  /** Whether the process of this name is known to have ended. false: it runs, or this process cannot know. */
  hasEnded(processName: string): boolean;
  /** Resolves after so many milliseconds, or when the client leaves; to whether it is still there. */
  pause(ms: number): Promise<boolean>;
}

export interface CalledModel {
  /** The tokens of a request's prompt; an estimate where the model's engine cannot count them. Rejects with `FailureError`. */
  countTokens(request: GenerationRequest): Promise<number>;
}

/** A whole answer, or a stream of events. Status 200. */
export type PortAnswer = { readonly body: string } | { readonly events: AsyncIterable<string> };
