import type { Profile } from "../../wire/apis/profile.ts";
import type { EngineHealth, UpstreamUrl } from "../../wire/core/engine.ts";
import type { ServedHook } from "./hook/hook-prefixes.ts";
import type { HostedToolExecutors } from "../../wire/core/hosted-tool.ts";
import type { Limiter } from "../kv/limits.ts";
import type { StoreLimits } from "../kv/store.ts";
import type { AdminAccess } from "./admin/admin-access.ts";
import type { Checker, ModelControl } from "./admin/model-control.ts";
import type { KeyControl } from "./admin/key-control.ts";
import type { ClientStores } from "./client-stores.ts";
import type { BodyBudget } from "./body-budget.ts";
import type { Inspector } from "./inspect/inspector.ts";
import type { PriceList } from "./keys/prices.ts";
import type { KeyRing } from "./keys/key-ring.ts";
import type { Log, StreamLog } from "./log.ts";
import type { Mask } from "./mask.ts";
import type { ModelDirectory, ServedEngine } from "./model-directory.ts";
import type { ModelRoutes } from "./model-routes.ts";
import type { Origins } from "./origins.ts";
import type { RunningAnswers } from "./running-answers.ts";
import type { RequestOutcome, RequestRecord } from "./request-record.ts";
import type { Runs } from "./runs.ts";
import type { Tracing } from "./tracing/tracing.ts";

/** The settings that are replaced when the configuration is reloaded. */
export interface ServiceSettings {
  readonly profile: Profile;
  readonly keys: KeyRing;
  /** Whether an upstream gets the keys of clients, which this server cannot check. */
  readonly passesKeys: boolean;
  readonly prices: PriceList;
  readonly routes: ModelRoutes;
  /** What an answer with hosted tools may cost, in US dollars; absent: no limit. */
  readonly hostedMaxCost?: number | undefined;
  /** Access to the admin API. */
  readonly admin: AdminAccess;
  /** The keys for `/metrics`; absent: those of the API. */
  readonly metricsKeys?: KeyRing;
  /** Whether `/metrics` needs no key. */
  readonly metricsOpen: boolean;
  readonly origins: Origins;
  /** Removes the secrets of the configuration. */
  readonly mask: Mask;
  /** The maximum size of a request body, compressed and decompressed, in bytes. */
  readonly bodyLimit: number;
  /** The maximum size of all request bodies in memory, in bytes. */
  readonly bodyBudget: number;
  /** How long the status of a stream is held back for the first event, in milliseconds. */
  readonly holdMs: number;
  /** The time without an event after which a stream sends a comment, in milliseconds. */
  readonly keepAliveMs: number;
  /** How long a slow reader may keep other requests waiting (`SlowReader`), in milliseconds. */
  readonly readerPatienceMs: number;
  /** The maximum time that a stream continues without its client if the client asks for that, in milliseconds; 0: not at all. */
  readonly resumeStreamsMs: number;
}

/** The server, as its requests use it. Only what has opened it replaces anything (`OpenedService`). */
export interface Service {
  readonly state: "loading" | "ready" | "closing";
  readonly settings: ServiceSettings;
  readonly directory: ModelDirectory;
  readonly admin: ServiceAdmin;
  readonly log: Log;
  readonly streamLog?: StreamLog;
  /** Reads the page for browsers once; undefined: it was not built. Absent in `createHandler`. */
  readonly page?: () => Promise<PageFiles | undefined>;
  readonly requests: Requests;
  /** Limits the memory for request bodies. */
  readonly bodies: BodyBudget;
  readonly stores: ServiceStores;
  readonly runs: Runs;
  /** Runs batches; absent until the models are open, and if files are off. */
  readonly batches?: Batches | undefined;
  readonly answers: RunningAnswers;
  /** Absent if the runtime has no processes. */
  readonly processes?: Processes;
  /** What runs hosted tools; absent: nothing is configured. Each client may use some of them (`hostedToolsOf`). */
  readonly hostedTools?: HostedToolExecutors | undefined;
  /** Absent: none is configured. */
  readonly hook?: ServedHook | undefined;
  readonly watchers: ServiceWatchers;
}

/** What the admin API controls. */
export interface ServiceAdmin {
  readonly control?: ModelControl;
  /** Absent: all keys are in the configuration. */
  readonly keys?: KeyControl | undefined;
  /** Absent in `createHandler`, which has no page. */
  readonly checker?: Checker;
}

/** What is kept and counted for clients. `brief`: for some minutes, in memory, what must not be stored permanently. */
export interface ServiceStores extends ClientStores {
  /** The key by which this installation seals what clients send back (`TurnSeal`). */
  readonly turnKey: Uint8Array;
  /** Counts the usage of clients with limits. */
  readonly limiter: Limiter;
}

/** Who watches requests. */
export interface ServiceWatchers {
  /** Absent if metrics are off. */
  readonly metrics?: Metrics;
  /** Absent if requests are not inspected. */
  readonly inspector?: Inspector | undefined;
  /** Absent until the server has opened it, and if tracing is off. */
  readonly tracing?: Tracing;
}

/** The service for what opens it, and reads its configuration again. */
export interface OpenedService extends Service {
  state: Service["state"];
  settings: ServiceSettings;
  directory: ModelDirectory;
  hostedTools?: HostedToolExecutors | undefined;
  hook?: ServedHook | undefined;
  batches?: Batches | undefined;
  readonly stores: Writable<ServiceStores>;
  readonly watchers: Writable<ServiceWatchers>;
}

type Writable<T> = { -readonly [Member in keyof T]: T[Member] };

/** What runs batches. */
export interface Batches {
  /** Called when a batch was created. */
  look(): void;
  /** Called when a client has cancelled one of its batches. */
  cancelled(owner: string): void;
  /** Stops all requests of batches. Another process, or the next one, goes on with them. */
  close(): Promise<void>;
}

/** The processes of all servers that share a store. */
export interface Processes {
  /** The name of this process. */
  readonly own: string;
  /** Whether the process of this name is known to have ended. */
  hasEnded(name: string): boolean;
}

/** The limits of `ServiceStores.brief`: clients fetch a background response soon. */
export const briefly: StoreLimits = { maxCount: 10_000, maxBytes: 64 * 1024 * 1024, maxAgeMs: 10 * 60_000 };

/** Counts requests, for /health and for a shutdown that waits. */
export class Requests {
  open = 0;
  total = 0;
  /** Requests whose client left before the answer was complete. */
  cancelled = 0;
  /** Requests that were answered with a 5xx status, or with an error in the stream. */
  failed = 0;
  #waiting: (() => void)[] = [];

  begin(): void {
    this.open++;
    this.total++;
  }

  finish(outcome: RequestOutcome): void {
    this.open--;
    if (outcome === "cancelled") this.cancelled++;
    if (outcome === "failed") this.failed++;
    if (this.open === 0) for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when no request is open. */
  idle(): Promise<void> {
    if (this.open === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** One file of the page that browsers get. */
export interface PageFile {
  readonly contentType: string;
  readonly text: string;
  /** The value of the header, with its quotes. */
  readonly etag: string;
}

/** The files of the page, by name. */
export type PageFiles = ReadonlyMap<string, PageFile>;

export interface HealthReport {
  readonly state: "loading" | "ready" | "closing";
  readonly engines: readonly EngineReport[];
  readonly requests: RequestCounts;
}

export interface EngineReport extends EngineHealth {
  readonly name: string;
  readonly models: readonly string[];
  /** Of an upstream; not part of `/health`. */
  readonly urls?: readonly UpstreamUrl[];
}

export interface RequestCounts {
  readonly open: number;
  readonly total: number;
  readonly cancelled: number;
  readonly failed: number;
}

/** Metrics in Prometheus' exposition format. */
export interface Metrics {
  /** Called when a request has ended, for every path. */
  observe(record: RequestRecord, outcome: RequestOutcome): void;
  /** Called when a call of a hosted tool has ended. `executor`: its name in the configuration. */
  observeHostedCall(executor: string, outcome: "succeeded" | "failed", ms: number): void;
  readonly contentType: string;
  /** The text of all metrics. */
  text(engines: readonly ServedEngine[], openRequests: number): Promise<string>;
  /** Ends all measurements. */
  close(): void;
}
