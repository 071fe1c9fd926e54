import { FailureError } from "../../wire/core/failure.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { SourcePort } from "../../wire/apis/source-port.ts";
import type { Dispatcher } from "undici";
import { noCredential } from "./key-pool.ts";
import type { Credential, UnauthorizedRequest } from "./options.ts";
import type { Transport, TransportRequest } from "./transport.ts";

/*
 * Credentials that a server does not accept forever: a token that a command prints, keys of AWS that sign each request. They are renewed
 * before they expire, by one request for all, and once more when the server refuses them.
 */

type Headers = UnauthorizedRequest["headers"];

/** A value that expires, in milliseconds of Unix time. */
export interface Expiring<T> {
  readonly value: T;
  readonly expiresAt: number;
}

/** The share of its life in which a value is renewed in the background. */
const renewalShare = 0.2;
/** The longest such time. */
const maxRenewalMs = 300_000;
/** How long a failure is everybody's, and how long after it a value that is still valid is not renewed. */
const failureMs = 5000;
/** A refused value is renewed, but not more often: the server may refuse each one. */
const minRenewalMs = 60_000;

/** A value that is obtained once for all requests, and renewed before it expires. */
export class Renewed<T> {
  readonly #obtain: () => Promise<Expiring<T>>;
  readonly #now: () => number;
  readonly #log: ((error: FailureError) => void) | undefined;
  #current: (Expiring<T> & { readonly renewAt: number }) | undefined;
  #running: Promise<T> | undefined;
  #failure: { readonly error: unknown; readonly until: number } | undefined;
  #refusedAt = -Infinity;

  /** `obtain` rejects with `FailureError`; `failed` is called if that happens in the background. */
  constructor(obtain: () => Promise<Expiring<T>>, failed?: (error: FailureError) => void, now = Date.now) {
    this.#obtain = obtain;
    this.#log = failed;
    this.#now = now;
  }

  /** The last value; it may have expired. */
  get last(): T | undefined {
    return this.#current?.value;
  }

  /** A value that is valid. */
  get(): T | Promise<T> {
    const now = this.#now();
    const current = this.#current;
    if (!current || now >= current.expiresAt) return this.#renew(now);
    if (now >= current.renewAt) this.#renew(now).catch((error: unknown) => this.#log?.(error as FailureError));
    return current.value;
  }

  /** The server has refused the last value. Returns whether the next one is another. */
  refused(): boolean {
    const now = this.#now();
    if (this.#running) return true;
    if (now - this.#refusedAt < minRenewalMs) return false;
    this.#refusedAt = now;
    if (this.#current) this.#current = { ...this.#current, expiresAt: now };
    return true;
  }

  #renew(now: number): Promise<T> {
    if (this.#running) return this.#running;
    if (this.#failure && now < this.#failure.until) return Promise.reject(this.#failure.error as Error);
    this.#running = this.#obtain()
      .then(({ value, expiresAt }) => {
        const life = expiresAt - this.#now();
        this.#current = { value, expiresAt, renewAt: expiresAt - Math.min(maxRenewalMs, life * renewalShare) };
        this.#failure = undefined;
        return value;
      })
      .catch((error: unknown) => {
        this.#failure = { error, until: this.#now() + failureMs };
        throw error;
      })
      .finally(() => (this.#running = undefined));
    return this.#running;
  }
}

/** A command without a shell: the program and its arguments. */
export type Command = readonly string[];

/** Runs a command and resolves with its output. Rejects with an Error that gives the reason for the failure. */
export type RunCommand = (command: Command) => Promise<string>;

/** The failure of a credential. `why` is for people. */
export function credentialFailure(upstream: string, why: string): FailureError {
  const message = `The credential of the upstream ${upstream} cannot be obtained: ${why}`;
  return new FailureError({ kind: "unavailable", status: 503, message, param: null, code: noCredential });
}

/** Logs that a credential could not be renewed while the last one is still valid. */
export function renewalWarning(log: LogListener | undefined): (error: FailureError) => void {
  return ({ message }) => log?.("a credential could not be renewed; it is still valid", "warn", { error: message });
}

/** What a token's command is, as configured. */
export interface TokenCommand {
  readonly command: Command;
  /** How long a token is valid, in milliseconds. */
  readonly expires: number;
}

/** The upstream of a token, and what obtains it. */
export interface TokenUpstream {
  readonly name: string;
  readonly log?: LogListener | undefined;
  readonly run: RunCommand;
  /** Obtains it with other instances. */
  readonly shared?: (obtain: () => Promise<Expiring<string>>) => () => Promise<Expiring<string>>;
}

/** A token that a command prints, such as `gcloud auth print-access-token`. */
export function commandToken(
  { command, expires }: TokenCommand,
  { name, log, run, shared = (obtain) => obtain }: TokenUpstream,
  now = Date.now,
): Credential {
  const obtain = async (): Promise<Expiring<string>> => {
    try {
      const token = await run(command);
      if (!/^[!-~]+$/.test(token))
        throw new Error(`'${command[0] ?? ""}' printed more than a token: expected one word.`);
      return { value: token, expiresAt: now() + expires };
    } catch (error) {
      throw credentialFailure(name, (error as Error).message);
    }
  };
  const tokens = new Renewed(shared(obtain), renewalWarning(log), now);
  const authorized = ({ headers }: UnauthorizedRequest, port: SourcePort, token: string): Headers => ({
    ...headers,
    ...port.headers(token),
  });
  return {
    id: JSON.stringify(command),
    authorize(request, port) {
      const token = tokens.get();
      return typeof token === "string"
        ? authorized(request, port, token)
        : token.then((late) => authorized(request, port, late));
    },
    refused: (status) => status === 401 && tokens.refused(),
    hiddenIn: (text) => withoutSecret(text, tokens.last),
  };
}

export function withoutSecret(text: string, secret: string | undefined): string {
  return secret === undefined || secret === "" ? text : text.replaceAll(secret, "[key]");
}

/** The transport with a credential for each request. A refused one is renewed, and the request sent once more. */
export function withCredential(
  transport: Transport,
  origin: string,
  port: SourcePort,
  credential: Credential,
): Transport {
  const headersOf = (request: UnauthorizedRequest): Headers | Promise<Headers> => credential.authorize(request, port);
  const authorized = async <Request extends Omit<UnauthorizedRequest, "origin" | "body">>(
    request: Request,
    body?: string,
  ): Promise<Request> => ({
    ...request,
    headers: await headersOf({ ...request, origin, ...(body !== undefined && { body }) }),
  });
  const dispatch = (request: TransportRequest, handler: Dispatcher.DispatchHandler): void => {
    const headers = headersOf({ ...request, origin });
    if (!(headers instanceof Promise)) return transport.dispatch({ ...request, headers }, handler);
    headers.then(
      (late) => transport.dispatch({ ...request, headers: late }, handler),
      (error: unknown) => handler.onResponseError?.(noController, error as Error),
    );
  };
  return {
    ...transport,
    dispatch: (request, handler) =>
      dispatch(request, new RenewingHandler(handler, credential, () => dispatch(request, handler))),
    async request(request) {
      const answer = await transport.request(await authorized(request, request.body));
      if (!credential.refused(answer.statusCode)) return answer;
      await answer.body.dump();
      return transport.request(await authorized(request, request.body));
    },
    async pass(request) {
      const answer = await transport.pass(await authorized(request));
      // Its body has been read: the next request gets the renewed credential.
      credential.refused(answer.statusCode);
      return answer;
    },
  };
}

/** Of a request that was not sent: there is nothing to pause or abort. */
const noController = { paused: false, aborted: false, reason: null } as Dispatcher.DispatchController;

/** Passes an answer on, unless it refuses the credential: then the request is sent again. */
class RenewingHandler implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #credential: Credential;
  readonly #again: () => void;
  #isRefused = false;

  constructor(handler: Dispatcher.DispatchHandler, credential: Credential, again: () => void) {
    this.#handler = handler;
    this.#credential = credential;
    this.#again = again;
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: object): void {
    this.#handler.onRequestStart?.(controller, context);
  }

  onResponseStart(...answer: Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>): void {
    this.#isRefused = this.#credential.refused(answer[1]);
    if (!this.#isRefused) this.#handler.onResponseStart?.(...answer);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isRefused) this.#handler.onResponseData?.(controller, chunk);
  }

  onResponseEnd(...end: Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseEnd"]>>): void {
    if (this.#isRefused) this.#again();
    else this.#handler.onResponseEnd?.(...end);
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#isRefused && !controller.aborted) this.#again();
    else this.#handler.onResponseError?.(controller, error);
  }
}
