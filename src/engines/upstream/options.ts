import type { Observe } from "../../core/observe.ts";
import type { Format } from "../../formats/format.ts";
import type { SourceApi } from "../../apis/source-api.ts";
import type { ServerProfile } from "../../apis/server-profile.ts";
import type { Ejections } from "./ejections.ts";

/** One upstream: a server (or several alike) that speaks OpenAI's API, or nearly. Times are in milliseconds. */
export interface UpstreamOptions {
  /** Base URLs, such as `http://localhost:11434/v1`. Several serve the same models; a request goes to the one with the least to do. */
  readonly urls: readonly string[];
  /** Its name in logs and messages. */
  readonly name: string;
  /** The API that it speaks; default: OpenAI's chat (and legacy completions). */
  readonly api?: SourceApi | undefined;
  /** Sent as the API wants it: `Authorization: Bearer …`, or `x-api-key: …`. */
  readonly key?: string | undefined;
  /** Sent with every request; they win over Truewire's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The models to serve: the name that clients use → the upstream's name. Absent: those that the upstream lists, kept up to date.
   */
  readonly models?: Readonly<Record<string, string>> | undefined;
  /** A model (as clients call it) → models of this upstream that stand in for it, in order, when it fails before its first event. */
  readonly fallbacks?: Readonly<Record<string, readonly string[]>> | undefined;
  /** What it accepts, beyond what is known of it. */
  readonly profile?: Omit<ServerProfile, "model"> | undefined;
  /** The upstream takes only `n: 1`: several choices are several calls. */
  readonly singleChoice?: boolean | undefined;
  /** How the models write calls and reasoning, where the upstream leaves them in the text; "auto": any known way. */
  readonly format?: Format | "auto" | undefined;
  readonly timeouts?: UpstreamTimeouts | undefined;
  /** Further attempts before the first event; default 2. */
  readonly retries?: number | undefined;
  readonly tls?: UpstreamTls | undefined;
  /** The longest event of a stream in characters, and the longest answer without a stream in bytes; default 16 Mi. */
  readonly answerLimit?: number | undefined;
  /** How many files the process may have open. No connection is made with the last few: they are for refusing clients. */
  readonly descriptorLimit?: number | undefined;
  /** Absent: no other process of this server asks these URLs. */
  readonly ejections?: Ejections | undefined;
  readonly log?: Observe | undefined;
}

export interface UpstreamTimeouts {
  /** Until the connection stands; default 10 s. */
  readonly connect?: number | undefined;
  /** Until the first event (a long prompt takes its time); default 10 minutes. */
  readonly firstEvent?: number | undefined;
  /** Of silence after that; default 2 minutes. */
  readonly idle?: number | undefined;
}

/** Certificates are PEM texts. */
export interface UpstreamTls {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  /** Default true. False accepts any certificate: for tests and closed networks. */
  readonly verify?: boolean | undefined;
}
