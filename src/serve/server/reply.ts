import type { ModelInfo } from "../../wire/core/engine.ts";
import type { GenerationFailure } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { internalError } from "../../wire/apis/failures.ts";
import type { ReadOptions } from "../../wire/apis/port.ts";
import type { Profile } from "../../wire/apis/profile.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import type { HeaderReader, ApiErrorFormat } from "../../wire/apis/api-error-format.ts";
import type { UsageLimits } from "../kv/limits.ts";
import { dollars } from "./keys/money-headers.ts";
import type { Caller, Held } from "./caller.ts";
import { ClientGone } from "./exchange.ts";
import type { AnswerSink, HttpExchange, HeaderFields } from "./exchange.ts";
import type { Mask } from "./mask.ts";
import type { ServedModel } from "./model-directory.ts";
import type { ObservedApi } from "./request-facts.ts";
import type { RequestRecord } from "./request-record.ts";
import type { Service, ServiceSettings } from "./service.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** One path of the server. */
export interface ServerRoute {
  /** How the API of the path writes keys, headers and errors. A function if several APIs share the path and are distinguished by headers, or by the query. */
  readonly conventions: ApiErrorFormat | ((header: HeaderReader, query: HeaderReader) => ApiErrorFormat);
  /** Needs no key. */
  readonly open?: boolean;
  /** Needs an admin key. */
  readonly admin?: boolean;
  /** Throws `FailureError` if the server has nothing at the path, before a key is asked for. */
  readonly requireEnabled?: (service: Service) => void;
  /** An upstream whose `passPaths` have the path answers it. */
  readonly upstreamFirst?: boolean;
  /** The API under which its POST requests are counted and traced. */
  readonly api?: ObservedApi;
  readonly methods: Readonly<Partial<Record<Method, EndpointHandler | ModelEndpoint>>>;
}

/** Answers a request. `parameter`: the decoded value of `{id}` or `{rest}` in the path; "" if the path has none. */
export type EndpointHandler = (reply: Reply, service: Service, parameter: string) => Promise<void> | void;

/**
 * An endpoint that asks a model. The stages of a request (handle.ts) receive the body, find the model and take the client's limits; the
 * endpoint supplies what differs.
 */
export interface ModelEndpoint<Read extends NamedRequest = NamedRequest> {
  /** The API name in `ServedEngine.forwards`; absent: requests are never forwarded unchanged. */
  readonly api?: string;
  /** Only models with this endpoint are listed when the requested one does not exist; default: all. */
  readonly lists?: ModelInfo["endpoints"][number];
  /** "form": requests are `multipart/form-data`. Default: JSON. */
  readonly bodyType?: "form" | undefined;
  /** In profile `exact`, an unknown model is reported before any mistake in the request. */
  readonly findsModelFirst?: boolean | undefined;
  /** Reads and validates the parsed body. Throws `FailureError`. */
  read(body: unknown, options: BodyOptions, reply: Reply, service: Service): Read | Promise<Read>;
  /** Throws `FailureError` if the model cannot answer such requests. `others`: all models of the client. */
  check?(model: ServedModel, read: Read, others: () => readonly ModelInfo[], profile: Profile): void;
  /** What a rule's share of the conversations is counted by; absent: the endpoint has no conversations. */
  conversation?(read: Read): GenerationRequest;
  /** The tokens to take from the client's limits, and the images of the prompt; default: none. */
  cost?(read: Read, limits: UsageLimits): TakenTokens;
  answer(read: Read, model: ServedModel, reply: Reply, service: Service): Promise<void>;
}

export interface TakenTokens {
  /** The estimated tokens of the prompt; 0: the request costs none. */
  readonly prompt: number;
  /** Those that the answer may have. */
  readonly reserved?: number;
  readonly images?: number;
}

/** The model of a request; undefined: the request names none, and the only served model is meant. */
export interface NamedRequest {
  readonly name: string | undefined;
}

export interface BodyOptions
  extends Required<Omit<ReadOptions, "standsFor" | "runs">>, Pick<ReadOptions, "standsFor" | "runs"> {
  /** Whether the server to which requests are forwarded runs hosted tools; undefined: not known. */
  readonly runsHostedTools?: boolean | undefined;
}

/** What a warning is about: what the request asks for, how long its model stays loaded, or what its client may still spend. */
type WarningSource = "request" | "keepLoaded" | "budget";

/** One request and its answer. Sends one answer only. */
export class Reply {
  readonly requestId: string;
  readonly record: RequestRecord;
  readonly exchange: HttpExchange;
  /** How the API of the path writes keys, headers and errors. */
  readonly conventions: ApiErrorFormat;
  #caller: Caller = {};
  #held: Held = {};
  #sink: AnswerSink;
  /** The client's header `X-Truewire-Wire`. Precedence: header, model, server. */
  #requestedProfile: Profile | undefined;
  /** The profile of the server, or of the model once it is known. */
  #configuredProfile: Profile;
  /** Added to every answer. */
  #headers: HeaderFields = {};
  readonly #warnings = new Map<WarningSource, readonly string[]>();
  #mask: Mask;
  #sent = false;

  constructor(
    exchange: HttpExchange,
    requestId: string,
    conventions: ApiErrorFormat,
    record: RequestRecord,
    settings: Pick<ServiceSettings, "profile" | "mask">,
  ) {
    this.exchange = exchange;
    this.#sink = exchange;
    this.requestId = requestId;
    this.conventions = conventions;
    this.record = record;
    this.#configuredProfile = settings.profile;
    this.#mask = settings.mask;
  }

  get caller(): Caller {
    return this.#caller;
  }

  identify(caller: Caller): void {
    this.#caller = caller;
  }

  get held(): Held {
    return this.#held;
  }

  hold(more: Held): void {
    this.#held = { ...this.#held, ...more };
  }

  /** For an answer that outlasts its exchange: who gets what the request holds has to release it. */
  handOver(): Held {
    const held = this.#held;
    this.#held = {};
    return held;
  }

  /** What the answer is written to: the exchange, unless the answer continues without it. */
  get sink(): AnswerSink {
    return this.#sink;
  }

  writeTo(sink: AnswerSink): void {
    this.#sink = sink;
  }

  /** The profile of this answer, errors included. */
  get profile(): Profile {
    return this.#requestedProfile ?? this.#configuredProfile;
  }

  /** The client's choice comes before those of the model and the server. */
  requestProfile(profile: Profile | undefined): void {
    this.#requestedProfile = profile;
  }

  /** Sets the profile of the model (undefined: the server's) and returns the profile of the answer. */
  useProfile(profile: Profile | undefined): Profile {
    if (profile) this.#configuredProfile = profile;
    return this.profile;
  }

  /** The API key that the client sent; "" if none. */
  get key(): string {
    const { exchange } = this;
    return this.conventions.keyIn(
      (name) => exchange.header(name),
      (name) => exchange.query(name),
    );
  }

  /** Removes the secrets of the configuration, and of this request. */
  get mask(): Mask {
    return this.#mask;
  }

  /** Hides a secret of this request where the secrets of the configuration are hidden. */
  hide(secret: string): void {
    this.#mask = this.#mask.with(secret);
    this.record.watchers.listed?.hide(secret);
  }

  /** A header that has been added. */
  addedHeader(name: string): string | undefined {
    return this.#headers[name];
  }

  /** Replaces all headers that have been added. */
  replaceHeaders(headers: HeaderFields): void {
    this.#headers = headers;
  }

  /** Adds headers to the answer, and lets pages of other origins read them. */
  addHeaders(added: Readonly<Record<string, string>>): void {
    const { [exposes]: exposed } = this.#headers;
    if (exposed === undefined) {
      this.#headers = { ...this.#headers, ...added };
      return;
    }
    const known = new Set(exposed.toLowerCase().split(", "));
    const names = [exposed, ...Object.keys(added).filter((name) => !known.has(name))].join(", ");
    this.#headers = { ...this.#headers, ...added, [exposes]: names };
  }

  /** Adds warnings to the header of the answer, in place of earlier ones of this source. */
  warn(source: WarningSource, warnings: readonly string[]): void {
    this.#warnings.set(source, warnings);
  }

  /** Status and headers have been sent. */
  get sent(): boolean {
    return this.#sent;
  }

  /** Sends a complete answer. */
  send(status: number, contentType: string | null, body: string, headers: HeaderFields = {}): void {
    const { cost } = this.record;
    if (cost !== undefined) this.addHeaders({ "x-truewire-cost": dollars(cost) });
    const fields: Record<string, string> = {};
    if (contentType !== null) fields["content-type"] = contentType;
    this.#addHead(fields, status);
    Object.assign(fields, headers, this.#warningHeader(headers));
    this.record.watchers.inspection?.responseHeaders(fields);
    this.record.watchers.inspection?.responseText(body);
    this.#sink.send(status, fields, body);
  }

  /** Sends the status and the headers of a streamed answer. */
  open(headers: HeaderFields, status = 200): void {
    const fields = { ...headers };
    this.#addHead(fields, status);
    Object.assign(fields, this.#warningHeader(headers));
    this.record.watchers.inspection?.responseHeaders(fields);
    this.#sink.open(status, fields);
  }

  /** Sends a part of a streamed answer. Returns a promise if the reader is slow, as `Exchange.write`. */
  write(text: string): Promise<void> | undefined {
    const sent = this.#formatted(text);
    this.record.watchers.inspection?.responseText(sent);
    return this.#sink.write(sent);
  }

  /** Sends the last part of a streamed answer and ends it. */
  end(text: string): void {
    const sent = this.#formatted(text);
    this.record.watchers.inspection?.responseText(sent);
    this.#sink.end(sent);
  }

  #formatted(text: string): string {
    return this.#sink.format === undefined ? text : this.#sink.format(text);
  }

  /** Sends an error in the form of the API. Anything but a `FailureError` is a defect: status 500, and the cause is logged. */
  fail(error: unknown): void {
    if (error instanceof ClientGone) return;
    const thrown = error instanceof FailureError ? error.failure : internalError(error).failure;
    // The log masks the cause itself.
    const { cause, ...rest } = thrown;
    const failure: GenerationFailure = this.#mask.value(rest);
    const { sent } = this.record;
    if (cause !== undefined) sent.cause = cause;
    // The message about a wrong key quotes the key, and a short key without a mask.
    sent.refusal = failure.status === 401 ? { ...failure, message: failure.code ?? "no key" } : failure;
    // The writer of an open stream has ended it, unless the writer failed.
    if (this.#sent) return this.end("");
    const { status, contentType, body, headers } = this.conventions.writeFailure(
      failure,
      this.profile,
      this.requestId,
      (name) => this.exchange.header(name),
    );
    this.send(status, contentType, body, { ...headers, ...failureHeaders(failure) });
  }

  #addHead(fields: Record<string, string>, status: number): void {
    this.#sent = true;
    const { asked, sent } = this.record;
    sent.status = status;
    sent.headMs = Math.round(performance.now() - asked.receivedAt);
    // An answer that quotes a prompt must not become a page, whatever a browser thinks of its text.
    fields["x-content-type-options"] = "nosniff";
    Object.assign(fields, this.conventions.answerHeaders(this.requestId, sent.headMs), this.#headers);
  }

  /** The header of all warnings: those about the request, and an engine's about its answer. */
  #warningHeader({ [warning]: ofAnswer }: HeaderFields): HeaderFields {
    const warnings = [...this.#warnings.values()].flat();
    if (ofAnswer !== undefined) warnings.push(ofAnswer);
    return warnings.length === 0 ? {} : warningHeader(warnings);
  }
}

const exposes = "access-control-expose-headers";

function failureHeaders({ headers = {}, retryAfterSeconds }: GenerationFailure): HeaderFields {
  if (retryAfterSeconds === undefined) return headers;
  return { ...headers, "retry-after": String(Math.max(1, Math.ceil(retryAfterSeconds))) };
}

/** Longer warnings are cut, because proxies refuse answers with more than a few kilobytes of headers. In characters. */
const maxWarningLength = 1000;

const warning = "x-truewire-warning";

/** The header that lists the parts of a request that the answer ignores, for developers without access to the log. */
export function warningHeader(warnings: readonly string[]): HeaderFields {
  let text = "";
  for (const warning of warnings) {
    text += `${text === "" ? "" : "; "}${warning.slice(0, maxWarningLength + 1)}`;
    if (text.length > maxWarningLength) break;
  }
  const plain = text.replace(/[^ -~]+/g, "?");
  const isCut = plain.length > maxWarningLength;
  return { [warning]: isCut ? `${plain.slice(0, maxWarningLength - 3)}...` : plain };
}
