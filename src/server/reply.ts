import { internalError } from "../apis/failures.ts";
import { openaiVoice } from "../apis/openai-voice.ts";
import type { Profile } from "../apis/profile.ts";
import type { HeaderReader, Voice } from "../apis/voice.ts";
import type { GenerationFailure } from "../core/events.ts";
import { FailureError } from "../core/failure.ts";
import type { BodyLease } from "./body-budget.ts";
import { ClientGone } from "./exchange.ts";
import type { Exchange, HeaderFields } from "./exchange.ts";
import type { Client } from "./keys/key-ring.ts";
import type { Turn } from "./keys/turn.ts";
import type { Mask } from "./mask.ts";
import type { ObservedApi, RequestRecord } from "./request-record.ts";
import type { Service, Settings } from "./service.ts";

/** The answer to one request: what every answer carries (ids, times, CORS), and that only one is sent. */
export class Reply {
  readonly requestId: string;
  readonly record: RequestRecord;
  readonly exchange: Exchange;
  /** What the client's own header asks for. Precedence: header, model, server. */
  askedProfile: Profile | undefined;
  /** Who sent the request; absent where nobody needs a key. */
  client: Client | undefined;
  /** What the request's body holds of the server's budget, once it is read. */
  bodyLease: BodyLease | undefined;
  /** Where the client has limits: what was taken for the request. */
  turn: Turn | undefined;
  /** The client has no key, or one for some models only, on a path that needs none where others do: it learns no names of models. */
  isStranger = false;
  /** Added to whatever is sent. */
  headers: HeaderFields = {};
  /** Of the API that the path belongs to. */
  voice: Voice = openaiVoice;
  /** The model's profile, once the model is known; the server's until then. */
  #ownProfile: Profile;
  readonly #mask: Mask;
  #sent = false;

  constructor(
    exchange: Exchange,
    requestId: string,
    record: RequestRecord,
    settings: Pick<Settings, "profile" | "mask">,
  ) {
    this.exchange = exchange;
    this.requestId = requestId;
    this.record = record;
    this.#ownProfile = settings.profile;
    this.#mask = settings.mask;
  }

  /** The form of this answer, errors included. */
  get profile(): Profile {
    return this.askedProfile ?? this.#ownProfile;
  }

  /** Sets the profile of the model that answers (undefined: the server's). Returns the profile that the answer gets. */
  useProfile(profile: Profile | undefined): Profile {
    if (profile) this.#ownProfile = profile;
    return this.profile;
  }

  /** Adds to the headers of whatever is sent; pages may read them, too. */
  addHeaders(added: Readonly<Record<string, string>>): void {
    const { [exposes]: exposed } = this.headers;
    const names = [...(exposed === undefined ? [] : [exposed]), ...Object.keys(added)].join(", ");
    this.headers = { ...this.headers, ...added, ...(exposed !== undefined && { [exposes]: names }) };
  }

  /** Status and headers are out. */
  get sent(): boolean {
    return this.#sent;
  }

  /** Sends a whole answer. */
  send(status: number, contentType: string | null, body: string, headers: HeaderFields = {}): void {
    const fields: Record<string, string> = {};
    if (contentType !== null) fields["content-type"] = contentType;
    this.#addHead(fields, status);
    this.exchange.send(status, Object.assign(fields, headers), body);
  }

  /** Opens a streamed answer. */
  open(headers: HeaderFields): void {
    const fields = { ...headers };
    this.#addHead(fields, 200);
    this.exchange.open(200, fields);
  }

  /** Sends an error in the API's words. Anything but a `FailureError` is a bug of ours: 500, and its cause goes to the log. */
  fail(error: unknown): void {
    if (error instanceof ClientGone) return;
    const thrown = error instanceof FailureError ? error.failure : internalError(error).failure;
    // The cause goes to the log, which masks for itself.
    const { cause, ...told } = thrown;
    const failure: GenerationFailure = this.#mask.value(told);
    if (cause !== undefined) this.record.cause = cause;
    this.record.refusalKind = failure.kind;
    // The message about a wrong key quotes the key, and a short key without a mask.
    this.record.refusal = failure.status === 401 ? (failure.code ?? "no key") : failure.message;
    // An open stream was ended by its own writer, unless the writer failed.
    if (this.#sent) return this.exchange.end("");
    const { status, contentType, body, headers } = this.voice.writeFailure(failure, this.profile, this.requestId);
    this.send(status, contentType, body, { ...headers, ...failureHeaders(failure) });
  }

  #addHead(fields: Record<string, string>, status: number): void {
    this.#sent = true;
    this.record.status = status;
    this.record.headMs = Math.round(performance.now() - this.record.receivedAt);
    Object.assign(fields, this.voice.answerHeaders(this.requestId, this.record.headMs), this.headers);
  }
}

const exposes = "access-control-expose-headers";

function failureHeaders({ headers = {}, retryAfterSeconds }: GenerationFailure): HeaderFields {
  if (retryAfterSeconds === undefined) return headers;
  return { ...headers, "retry-after": String(Math.max(1, Math.ceil(retryAfterSeconds))) };
}

/** Longer ones are cut: proxies refuse answers whose head is larger than a few kilobytes. In characters. */
const longest = 1000;

/** What the request asks and the answer leaves out, for a client's developer who has no look at the log. */
export function warningHeader(warnings: readonly string[]): HeaderFields {
  let text = "";
  for (const warning of warnings) {
    text += `${text === "" ? "" : "; "}${warning.slice(0, longest + 1)}`;
    if (text.length > longest) break;
  }
  const plain = text.replace(/[^ -~]+/g, "?");
  return { "x-truewire-warning": plain.length > longest ? `${plain.slice(0, longest - 3)}...` : plain };
}

/** One path of the server. */
export interface Route {
  /** How the path's API speaks of keys and failures; a function where several share the path, and the headers say which is meant. */
  readonly voice: Voice | ((header: HeaderReader) => Voice);
  /** Needs no key. */
  readonly open?: boolean;
  /** Its POSTs are counted and traced as this API's. */
  readonly api?: ObservedApi;
  /** For whoever runs the server: another key than those of clients. */
  readonly admin?: boolean;
  readonly methods: Readonly<Partial<Record<Method, Answer>>>;
}

type Method = "GET" | "POST" | "DELETE";
/** `parameter`: what stands for `{id}` in the path. */
export type Answer = (reply: Reply, service: Service, parameter: string) => Promise<void> | void;
