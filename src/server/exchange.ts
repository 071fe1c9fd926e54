import { exact, lean, profileNamed } from "../apis/profile.ts";
import type { Profile } from "../apis/profile.ts";
import { unsupportedEnumValue } from "../apis/request/refusals.ts";
import { FailureError } from "../core/failure.ts";
import type { Store } from "../kv/store.ts";
import type { BodyLease } from "./body-budget.ts";

/**
 * One HTTP request and its answer, whatever carries them: node:http (node-exchange.ts) or the web's `fetch` (fetch-exchange.ts).
 * Everything above it in this room is written once, against this, and uses no Node built-in.
 */
export interface Exchange {
  /** Upper case. */
  readonly method: string;
  /** As it came, still percent-encoded, without the query. */
  readonly path: string;
  /** The first value of a member of the query, decoded; undefined: it is not there. */
  query(name: string): string | undefined;
  /** A request header by its lower-case name; several of one name are joined by ", ". */
  header(name: string): string | undefined;
  /** All request headers as they came, in their order. */
  headers(): readonly (readonly [name: string, value: string])[];
  /** What a framework (`express.json()`) has already made of the body, if one has. */
  readonly parsedBody?: unknown;
  /**
   * The body's bytes as they came. Rejects with 413 beyond `limit` bytes, with `ClientGone` when the client leaves while sending, and with
   * 503 or 408 where the budget of `lease` is used up.
   */
  readBody(limit: number, lease: BodyLease): Promise<Uint8Array>;
  /** Present: the body is a message of a connection; what it means as the body of a request. Throws `FailureError`. */
  readMessage?(body: unknown): unknown;
  /** Present: the client sends further requests by the same connection, and this store ends with it. */
  readonly connectionStore?: Store;
  /** The connection comes from this machine; absent where that is not known. */
  readonly isFromLoopback?: boolean;
  /** Of the client, before its answer was complete. */
  readonly departure: Departure;
  /** Sends a complete answer. */
  send(status: number, headers: HeaderFields, body: string): void;
  /** Sends status and headers of an answer whose body follows in pieces. */
  open(status: number, headers: HeaderFields): void;
  /**
   * One piece, sent at once. A promise: the reader is slow, wait for it before the next one; it resolves, too, when the client leaves or is
   * cut off.
   */
  write(text: string): Promise<void> | undefined;
  /** Ends an opened answer, with a last piece. */
  end(text: string): void;
  /** Breaks the connection off: its reader is given up. It has left then. */
  cut(): void;
}

/** Header fields by their lower-case names. */
export type HeaderFields = Readonly<Record<string, string>>;

/** A path within the API: without what stands in front of the API's paths, where it stands there. */
export function withoutBase(path: string, base: string): string {
  return base !== "" && path.startsWith(base) ? path.slice(base.length) || "/" : path;
}

/** The client left while its request was being read, so no answer is sent. */
export class ClientGone extends Error {
  constructor(options?: ErrorOptions) {
    super("The client closed the connection while sending its request.", options);
    this.name = "ClientGone";
  }
}

/** The header by which a client chooses the form of its answer. Precedence: header, model, server. */
export const profileHeader = "X-Truewire-Wire";

/**
 * The profile that a request's header asks for; undefined without that header. Throws `FailureError` 400, with the header's name as
 * `param`, for an unknown profile: a client that asks for one form and gets another would not notice.
 */
export function askedProfile(exchange: Exchange): Profile | undefined {
  const value = exchange.header(profileHeader.toLowerCase());
  if (value === undefined) return undefined;
  const profile = profileNamed(value.trim());
  if (profile) return profile;
  const { failure } = unsupportedEnumValue(profileHeader, value, [lean.name, exact.name]);
  throw new FailureError({ ...failure, message: `Invalid header '${profileHeader}'. ${failure.message}` });
}

/** Whether a client has left before its answer was complete: as a fact, for one listener, and as a signal. */
export class Departure {
  #happened = false;
  #controller: AbortController | undefined;
  #listener: (() => void) | undefined;

  get happened(): boolean {
    return this.#happened;
  }

  /** Created on first use: creating an AbortSignal takes Node longer than reading a request. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#happened) this.#controller.abort();
    return this.#controller.signal;
  }

  /** Calls `listener` when the client leaves, unless it has left; null removes the listener. */
  listen(listener: (() => void) | null): void {
    this.#listener = listener ?? undefined;
  }

  /** The client has left. */
  happen(): void {
    if (this.#happened) return;
    this.#happened = true;
    this.#controller?.abort();
    this.#listener?.();
  }
}

/** A path as routes have it: without `/v1`, and without what a base URL that ends in a slash makes some clients write. */
export function plainPath(path: string): string {
  return path
    .replace(/\/{2,}/g, "/")
    .replace(/^\/v1(?=\/|$)/, "")
    .replace(/\/$/, "");
}
