import type { TurnMemory } from "../../wire/core/turn-memory.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { Platform, SourceApi, SourcePort } from "../../wire/apis/source-port.ts";
import type { Format } from "../../text/formats/format.ts";
import type { TruncationMode } from "../../wire/apis/adapt/truncation.ts";
import type { Background } from "./background/background.ts";
import type { ProfileStore } from "./learned-profiles.ts";
import type { ServerProfile } from "../../wire/apis/adapt/server-profile.ts";

/** A request that a credential authorizes. */
export interface UnauthorizedRequest {
  readonly method: string;
  /** `https://host:port`. */
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** What authorizes requests in place of a key that stays the same. */
export interface Credential {
  /** Distinguishes credentials, and is no secret. */
  readonly id: string;
  /** The headers of a request with those that authorize it. Rejects with `FailureError` if there is no credential. */
  authorize(
    request: UnauthorizedRequest,
    port: SourcePort,
  ): UnauthorizedRequest["headers"] | Promise<UnauthorizedRequest["headers"]>;
  /** Called when a server has answered with this status. Returns whether it refused the credential, and another one may be accepted. */
  refused(status: number): boolean;
  /** Removes the secret from what a server says of it. */
  hiddenIn(text: string): string;
}

/** One of several keys of a server. */
export interface PoolKey {
  readonly key: string | Credential;
  /** Its share of the conversations, compared with the other keys. */
  readonly weight: number;
}

/** One upstream: a server, or several equivalent ones, whose API is OpenAI's, Anthropic's or nearly. Times are in milliseconds. */
export interface UpstreamOptions {
  /** Base URLs, such as `http://localhost:11434/v1`. Several serve the same models. */
  readonly urls: readonly string[];
  /**
   * How one of several URLs is chosen: by the fewest outstanding requests (default), or by the beginning of the prompt, so that a
   * conversation stays where its prompt is cached.
   */
  readonly balance?: "least-busy" | "prefix" | undefined;
  /** Its name in logs and messages. */
  readonly name: string;
  /** The maximum number of parallel generations, with all URLs together; further ones wait. Default: no limit. */
  readonly concurrency?: number | undefined;
  /** With `concurrency`: the maximum number of waiting generations of one owner; default 64. */
  readonly queueLimit?: number | undefined;
  /** Its API; default: OpenAI's chat (and legacy completions). */
  readonly api?: SourceApi | undefined;
  /** Whose form of the API it is; default: the API's own vendor's. */
  readonly platform?: Platform | undefined;
  /** Sent as `Authorization: Bearer …` or `x-api-key: …`, by the API. */
  readonly key?: string | undefined;
  /** In place of `key`: what authorizes each request. */
  readonly credential?: Credential | undefined;
  /** Several keys, each used with each URL, in place of `key`. */
  readonly keys?: readonly PoolKey[] | undefined;
  /** Each request has the key of its client (`GenerationRequest.clientKey`) in place of a key of the upstream. */
  readonly passKey?: boolean | undefined;
  /** Sent with every request. They override Truewire's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The models to serve: the name that clients use → the upstream's name. Absent: the upstream's list, read again every minute. */
  readonly models?: Readonly<Record<string, string>> | undefined;
  /** What it accepts. Overrides the profile of a known server, and what was learned. */
  readonly profile?: Omit<ServerProfile, "model"> | undefined;
  /** What happens to an answer to a prompt that the server has cut without an error; default "error". */
  readonly onTruncation?: TruncationMode | undefined;
  /** Opens the processes that read files and judge JSON. Absent: the runtime has no processes, and files are sent as they are. */
  readonly openBackground?: (() => Background) | undefined;
  /** Requests that it would not accept are refused, not adapted. */
  readonly strict?: boolean | undefined;
  /** Keeps what servers demand back of their turns, for clients that do not return it. Absent: nothing is kept. */
  readonly turns?: TurnMemory | undefined;
  /** Returns a short id of a target, from which the target's URL and key cannot be told. Default: a digest. */
  readonly sourceId?: ((text: string) => string) | undefined;
  /** Where what was learned is kept; default: in memory. */
  readonly profiles?: ProfileStore | undefined;
  /** The upstream takes only `n: 1`: several choices become several requests. */
  readonly singleChoice?: boolean | undefined;
  /** The format of calls and reasoning that the upstream leaves in the text; "auto": any known format. */
  readonly format?: Format | "auto" | undefined;
  /** Only for Ollama's own API. */
  readonly ollama?: OllamaOptions | undefined;
  readonly timeouts?: UpstreamTimeouts | undefined;
  /** Further attempts before the first event; default 2. */
  readonly retries?: number | undefined;
  readonly tls?: UpstreamTls | undefined;
  /** The maximum length of an event of a stream, in characters, and of an answer without a stream, in bytes; default 16 Mi. */
  readonly answerLimit?: number | undefined;
  /** The process's limit on open files. The last few are not used for connections to upstreams: clients are refused with them. */
  readonly descriptorLimit?: number | undefined;
  readonly log?: LogListener | undefined;
}

/** Sizes of contexts are in tokens. */
export interface OllamaOptions {
  /** The smallest context that a request asks for. */
  readonly minContext?: number | undefined;
  /** The largest one; default: the model's own. */
  readonly maxContext?: number | undefined;
  /** How long a model stays loaded, as Ollama reads it (`30m`, seconds, negative: forever); default: the server's. */
  readonly keepAlive?: string | number | undefined;
}

interface UpstreamTimeouts {
  /** Until the connection is open; default 10 s. */
  readonly connect?: number | undefined;
  /** Until the first event, which may follow the processing of a long prompt; default 10 minutes. */
  readonly firstEvent?: number | undefined;
  /** Between events after the first; default 2 minutes. */
  readonly idle?: number | undefined;
}

/** Certificates are PEM texts. */
interface UpstreamTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  /** Default true. False accepts any certificate: for tests and closed networks. */
  readonly verify?: boolean | undefined;
}
