import type { Profile } from "../apis/profile.ts";
import type { EngineHealth } from "../core/engine.ts";
import type { Limiter } from "../kv/limits.ts";
import type { Store, StoreLimits } from "../kv/store.ts";
import type { AdminAccess } from "./admin/admin-access.ts";
import type { Checker, ModelControl } from "./admin/model-control.ts";
import type { AssembledTexts } from "./assembled-texts.ts";
import type { BodyBudget } from "./body-budget.ts";
import type { DetachedRuns } from "./detached-runs.ts";
import type { Inspector } from "./inspect/inspector.ts";
import type { KeyRing } from "./keys/key-ring.ts";
import type { Log, StreamLog } from "./log.ts";
import type { Mask } from "./mask.ts";
import type { ModelDirectory, ServedEngine } from "./model-directory.ts";
import type { Origins } from "./origins.ts";
import type { Outcome, RequestRecord } from "./request-record.ts";
import type { Tracing } from "./tracing/tracing.ts";

/** What may change while the server runs, all at once, when its configuration is read again. */
export interface Settings {
  readonly profile: Profile;
  readonly keys: KeyRing;
  /** Who may use the admin API. */
  readonly admin: AdminAccess;
  /** With which keys the numbers may be read; absent: with those of the API. */
  readonly metricsKeys?: KeyRing;
  /** The numbers may be read without a key. */
  readonly metricsOpen: boolean;
  readonly origins: Origins;
  /** Of the secrets that the configuration holds. */
  readonly mask: Mask;
  /** Of a request's body, in bytes, packed and unpacked. */
  readonly bodyLimit: number;
  /** Of all request bodies together, in bytes. */
  readonly bodyBudget: number;
  /** How long a stream's 200 is held back for the first event, in milliseconds. */
  readonly holdMs: number;
  /** After so many milliseconds without an event, a stream gets a comment. */
  readonly keepAliveMs: number;
  /** How long a reader that takes nothing may keep others waiting (`SlowReader`). */
  readonly readerPatienceMs: number;
}

/** Everything that answering a request needs to know about the server. A running request keeps what it began with. */
export interface Service {
  state: "loading" | "ready" | "closing";
  settings: Settings;
  directory: ModelDirectory;
  /** What the admin API works with. */
  readonly control?: ModelControl;
  /** Absent: within somebody else's server, which has no page to ask for a check. */
  readonly checker?: Checker;
  readonly log: Log;
  readonly streamLog?: StreamLog;
  /** For browsers. Absent: within somebody else's server, which has pages of its own. */
  readonly page?: PageFiles;
  readonly requests: Requests;
  /** The memory for request bodies. */
  readonly bodies: BodyBudget;
  /** What APIs keep for their clients. */
  store: Store;
  /** The same for what must leave no trace: for some minutes, in memory. */
  readonly brief: Store;
  /** What this process has assembled from them. */
  readonly assembled: AssembledTexts;
  readonly runs: DetachedRuns;
  /** Absent: this runtime has no processes. */
  readonly processes?: Processes;
  /** Counts what clients with limits use. */
  limiter: Limiter;
  /** Absent: nobody counts. */
  metrics?: Metrics;
  /** Absent: nobody looks at requests. */
  inspector?: Inspector | undefined;
  /** Absent until the server has opened it. */
  tracing?: Tracing;
  /** The other processes of this server, where it has several. */
  readonly others?: Others;
}

/** The processes that use one store, of this server and of others. */
export interface Processes {
  /** The name of this one. */
  readonly own: string;
  /** Whether the process of this name is known to have ended. */
  hasEnded(name: string): boolean;
}

/** The processes that answer requests beside this one. */
export interface Others {
  /** How all of them are together; `own`: this one. Never rejects: without an answer in time, as far as it is known. */
  health(own: HealthReport): Promise<HealthReport>;
}

/** The limits of `Service.brief`: a client that asked for an answer in the background comes for it soon. */
export const briefly: StoreLimits = { maxCount: 10_000, maxBytes: 64 * 1024 * 1024, maxAgeMs: 10 * 60_000 };

/** Counts requests, for /health and for a shutdown that waits. */
export class Requests {
  open = 0;
  total = 0;
  /** The client left before its answer was complete. */
  cancelled = 0;
  /** Answered with a status from 500 on, or with an error inside the stream. */
  failed = 0;
  #waiting: (() => void)[] = [];

  begin(): void {
    this.open++;
    this.total++;
  }

  finish(outcome: Outcome): void {
    this.open--;
    if (outcome === "cancelled") this.cancelled++;
    if (outcome === "failed") this.failed++;
    if (this.open === 0) for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Resolves when none is open. */
  idle(): Promise<void> {
    if (this.open === 0) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** One file of the page that browsers get. */
export interface PageFile {
  readonly contentType: string;
  readonly text: string;
  /** As the header has it, in its quotes. */
  readonly etag: string;
}

/** The page's files by their names; whoever starts the server has read them. */
export type PageFiles = ReadonlyMap<string, PageFile>;

/** How one process is, or several of one server together. */
export interface HealthReport {
  readonly state: "loading" | "ready" | "closing";
  readonly engines: readonly EngineReport[];
  readonly requests: RequestCounts;
}

export interface EngineReport extends EngineHealth {
  readonly name: string;
  readonly models: readonly string[];
}

export interface RequestCounts {
  readonly open: number;
  readonly total: number;
  readonly cancelled: number;
  readonly failed: number;
}

/** Counts what happens, and tells it as Prometheus reads it. */
export interface Metrics {
  /** A request has ended, whatever its path. */
  observe(record: RequestRecord, outcome: Outcome): void;
  readonly contentType: string;
  /** All numbers; what the engines tell of themselves is asked of them now. */
  text(engines: readonly ServedEngine[], openRequests: number): Promise<string>;
  /** Nothing is measured any more. */
  close(): void;
}
