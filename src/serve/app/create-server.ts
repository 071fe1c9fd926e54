import { noKey, sourceId } from "../server/turn-key.ts";
import { StoredTurns } from "../server/stored-turns.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "../server/listen.ts";
import { openLog } from "../server/logger.ts";
import { openStreamLog } from "../server/stream-log.ts";
import { openWebSockets } from "../server/web-sockets.ts";
import { openChecker } from "./checking/open-checker.ts";
import type { AddressInfo } from "node:net";
import type { TruewireConfig } from "../config/config.ts";
import { parseConfig } from "../config/schema.ts";
import type { OpenOptions } from "./open-options.ts";
import { nodeRuntime } from "./runtime.ts";
import type { ModelInfo } from "../../wire/core/engine.ts";
import { loggedError } from "../../wire/core/failure.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import { AssembledTexts } from "../server/client-stores.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import {
  noStore,
  openFileStoreOf,
  openKeyStoreOf,
  openLimiterOf,
  openStoreOf,
  openTurnStoreOf,
  turnLimitsOf,
} from "./open-store-of.ts";
import { openHandler } from "./open-handler.ts";
import type { EmbeddedHandler, HandlerOptions } from "./open-handler.ts";
import { HostedTools, openHookOf } from "./hosted-tools.ts";
import { openTurnKey } from "./open-turn-key.ts";
import { openObserving } from "./open-observing.ts";
import { ProfileFile } from "./profile-file.ts";
import { EnginePool } from "./engine-pool.ts";
import {
  checkRoutes,
  inspectorOf,
  isForThisMachine,
  settingsOf,
  hasBudgets,
  warnOfFixedSettings,
  warnOfMissingPrices,
  warnOfOpenAddress,
} from "./settings-of-config.ts";
import { ManagedKeys } from "./managed-keys.ts";
import { PoolControl, oneAfterAnother } from "./pool-control.ts";
import { readServerFiles } from "./server-files.ts";
import type { ClientFiles } from "./server-files.ts";
import { BatchRunner } from "../server/batches/batch-runner.ts";
import { handle } from "../server/handle.ts";
import type { Log } from "../server/log.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import { maskedLog } from "../server/mask.ts";
import { NodeExchange } from "../server/node-exchange.ts";
import { BodyBudget } from "../server/body-budget.ts";
import { Runs } from "../server/runs.ts";
import { RunningAnswers } from "../server/running-answers.ts";
import { briefly, Requests } from "../server/service.ts";
import type { OpenedService, PageFile, PageFiles, Service } from "../server/service.ts";
import { descriptorLimit, openProcesses } from "./processes.ts";
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";

export interface TruewireServer {
  /** Where it listens, as a client would write it: `http://127.0.0.1:8080`. The API's base URL is this and `/v1`. */
  readonly url: string;
  /** What it serves now, under the names that clients use. */
  models(): readonly ModelInfo[];
  /**
   * Goes over to another configuration. Running answers end as they began; models that both configurations have stay loaded. Where it
   * listens, its time-outs and its logs stay as they are until a restart. Rejects when it cannot, and then nothing has changed.
   */
  reload(config: TruewireConfig): Promise<void>;
  /** Stops accepting, lets what runs finish within `graceMs` (default: the configuration's `grace`), and releases everything. */
  close(graceMs?: number): Promise<void>;
}

export interface ServerOptions {
  /** Where to log; default: stderr, from the configuration's `logLevel` on. */
  readonly log?: Log;
  /** How far a local model's download or loading is. */
  readonly onProgress?: OpenOptions["onProgress"];
  /** How long the start may wait for each upstream, in milliseconds; one that takes longer, or fails, is taken in later. */
  readonly upstreamPatienceMs?: number;
  /** Reads the configuration again when the admin API is asked to; absent: there is nothing to read. */
  readonly readConfig?: () => Promise<TruewireConfig>;
}

/**
 * Listens, opens the models, and resolves when they are ready. While they load, it answers 503 (`model_loading`). An upstream that does
 * not answer is taken in when it does. Throws `ConfigError` for an invalid configuration, the system's error when it cannot listen
 * (`EADDRINUSE`), and what an engine throws that cannot be opened.
 *
 * @example
 * import { createServer } from "truewire/server";
 *
 * const program = () => "Hello from a program.";
 * const server = await createServer({ port: 0, logLevel: "silent", models: [{ kind: "program", name: "hello", program }] });
 * const response = await fetch(`${server.url}/v1/chat/completions`, {
 *   method: "POST",
 *   headers: { "content-type": "application/json" },
 *   body: JSON.stringify({ model: "hello", messages: [{ role: "user", content: "Hi" }] }),
 * });
 * console.log((await response.json()).choices[0].message.content);
 * // → Hello from a program.
 * await server.close();
 */
export function createServer(config: TruewireConfig, options: ServerOptions = {}): Promise<TruewireServer> {
  return openServer(config, options);
}

/** A worker: one of several independent servers that share a port. */
export interface WorkerSide {
  /** From 1. */
  readonly number: number;
  /** The key of the installation. */
  readonly turnKey: Uint8Array;
  /** Called once with a function that returns the metrics of this worker. Returns one that returns those of all workers. */
  shareMetrics(own: () => Promise<string>): () => Promise<string>;
}

/**
 * The same for a worker; absent: the server is alone.
 *
 * @internal
 */
export async function openServer(
  config: TruewireConfig,
  options: ServerOptions,
  worker?: WorkerSide,
): Promise<TruewireServer> {
  let current = parseConfig(config);
  const { certificate, ...files } = await readServerFiles(current, nodeRuntime);
  const managed = current.managedKeys ? new ManagedKeys((...line) => log.warn(...line)) : undefined;
  const withManaged = (read: ClientFiles): ClientFiles => ({ ...read, ...(managed && { later: managed }) });
  let settings = settingsOf(current, withManaged(files), false);
  const inspector = inspectorOf(current, settings);
  const log = maskedLog(
    options.log ?? openLog(current.logLevel, current.logFormat, worker && { worker: worker.number }),
    () => settings.mask,
  );
  const { host, port, logStream } = current;
  const streamLog = logStream === undefined ? undefined : await openStreamLog(logStream, log, () => settings.mask);
  let pageFiles: ReturnType<typeof readPage> | undefined;
  const page: Service["page"] = () => (pageFiles ??= readPage());
  const openFiles = descriptorLimit();
  const profiles = current.profilesFile === undefined ? undefined : new ProfileFile(current.profilesFile, log);
  const turns = current.sessions.memory
    ? new StoredTurns(turnLimitsOf(current), current.store.at !== "memory", log)
    : undefined;
  const pool = new EnginePool({
    log,
    runtime: nodeRuntime,
    turns,
    store: () => service.stores.store,
    sourceId: (text) => sourceId(service.stores.turnKey, text),
    profiles,
    ...(openFiles !== undefined && { descriptorLimit: openFiles }),
    onProgress: options.onProgress,
    upstreamPatienceMs: options.upstreamPatienceMs,
  });
  const { readConfig } = options;
  const directory = (): ModelDirectory => service.directory;
  const control = new PoolControl({
    pool,
    directory,
    reload: readConfig && (async () => reload(await readConfig())),
  });
  const hosted = new HostedTools(log, nodeRuntime, (...call) => service.watchers.metrics?.observeHostedCall(...call));
  const observing = await openObserving(current, log, turns);
  const service: OpenedService = {
    state: "loading",
    admin: { control, checker: openChecker(), keys: managed },
    settings,
    directory: new ModelDirectory([]),
    log,
    requests: new Requests(),
    bodies: new BodyBudget(settings.bodyBudget),
    stores: {
      store: noStore,
      brief: new MemoryStore(briefly),
      assembled: new AssembledTexts(),
      turnKey: noKey,
      limiter: new MemoryLimiter(),
    },
    processes: openProcesses(),
    runs: new Runs(),
    answers: new RunningAnswers(),
    watchers: { ...observing.of, inspector },
    streamLog,
    page,
  };
  const { metrics } = service.watchers;
  if (worker && metrics) {
    const text = worker.shareMetrics(() => metrics.text(service.directory.engines, service.requests.open));
    service.watchers.metrics = { ...metrics, text };
  }
  /** Closes everything that the server opened in addition to its models. */
  const release = async (graceMs: number): Promise<void> => {
    await hosted.close();
    await service.hook?.close();
    await turns?.close(graceMs);
    await managed?.close();
    await service.stores.store.close();
    await service.stores.files?.store.close();
    await service.stores.limiter.close();
    await observing.close();
    await streamLog?.close();
  };
  const open = async (): Promise<void> => {
    service.stores.store = await openStoreOf(current, log, nodeRuntime);
    service.stores.files = await openFileStoreOf(current, log, nodeRuntime);
    service.stores.turnKey = worker?.turnKey ?? (await openTurnKey(current, log, nodeRuntime));
    await managed?.open(await openKeyStoreOf(current, log, nodeRuntime));
    const turnStore = turns && (await openTurnStoreOf(current, nodeRuntime));
    if (turnStore) turns?.use(turnStore);
    service.stores.limiter = await openLimiterOf(current, log, nodeRuntime);
    const { executors, commit } = await hosted.prepare(current);
    commit();
    service.hostedTools = executors;
    service.hook = await openHookOf(current, log, nodeRuntime);
    service.directory = await pool.use(current, isForThisMachine(current, settings.keys), (directory) =>
      checkRoutes(current, directory),
    );
    if (!worker || worker.number === 1) warnOfMissingPrices(settings, service.directory, hasBudgets(files.keys), log);
    service.state = "ready";
    service.batches = BatchRunner.start(service, current.batchConcurrency);
  };
  // A worker takes no connection before it can answer: the other workers can.
  if (worker)
    await open().catch(async (error: unknown) => {
      await release(0);
      throw error;
    });
  const sockets = openWebSockets(service);
  const listener = await listen(
    {
      host,
      port,
      ...(certificate && { certificate }),
      headerTimeoutMs: current.headerTimeout,
      requestTimeoutMs: current.requestTimeout,
      idleTimeoutMs: current.idleTimeout,
      descriptorLimit: openFiles,
      log,
    },
    (request, response) => void handle(new NodeExchange(request, response, { framesChunks }), service),
    (request, connection, head) => void sockets.upgrade(request, connection, head),
  ).catch(async (error: unknown) => {
    await release(0);
    throw error;
  });
  const { http } = listener;
  // With several workers, their parent process logs it.
  if (!worker) warnOfOpenAddress(current, settings, log);
  if (!worker)
    await open().catch(async (error: unknown) => {
      http.close();
      http.closeAllConnections();
      await release(0);
      throw error;
    });
  // Not when a browser first asks: an update of the package may have replaced the files by then.
  page().catch((error: unknown) => log.error({ cause: loggedError(error) }, "the page cannot be read"));

  const goOver = async (next: TruewireConfig): Promise<void> => {
    const parsed = parseConfig(next);
    // Read before anything changes: a certificate that is broken must not cost the rest.
    const read = await readServerFiles(parsed, nodeRuntime);
    const nextSettings = settingsOf(parsed, withManaged(read), false);
    const inspector = inspectorOf({ ...parsed, host }, nextSettings, service.watchers.inspector);
    const hook = await openHookOf(parsed, log, nodeRuntime);
    const hostedTools = await hosted.prepare(parsed).catch(async (error: unknown) => {
      await hook?.close();
      throw error;
    });
    try {
      service.directory = await pool.use(parsed, isForThisMachine({ host }, nextSettings.keys), (directory) =>
        checkRoutes(parsed, directory),
      );
    } catch (error) {
      await hook?.close();
      await hostedTools.discard();
      throw error;
    }
    hostedTools.commit();
    service.hostedTools = hostedTools.executors;
    // Calls that the earlier hook runs end within its time limit.
    const { hook: earlier } = service;
    if (earlier) setTimeout(() => void earlier.close(), 2 * (current.hook?.timeout ?? 0)).unref();
    service.hook = hook;
    if (read.certificate) listener.renew?.(read.certificate);
    service.settings = settings = nextSettings;
    service.bodies.limit = nextSettings.bodyBudget;
    service.watchers.inspector = inspector;
    if (!worker) {
      warnOfFixedSettings(parsed, current, log);
      log.info({ models: service.directory.list().map(({ info }) => info.id) }, "configuration read again");
    }
    current = { ...parsed, host, port };
  };
  const reload = oneAfterAnother(goOver);
  let closing: Promise<void> | undefined;
  const close = async (graceMs: number): Promise<void> => {
    service.state = "closing";
    const closed = new Promise<void>((resolve) => http.close(() => resolve()));
    http.closeIdleConnections();
    sockets.close();
    service.runs.close();
    const batches = service.batches?.close();
    // An engine that does not keep to the grace period cannot keep the server from stopping.
    const late = after(graceMs + 1000);
    const latestAt = performance.now() + graceMs + 1000;
    const idle = async (): Promise<void> => {
      await batches;
      await pool.close(graceMs);
      await service.requests.idle();
      await service.runs.delivered();
    };
    await Promise.race([idle(), late.promise]);
    late.cancel();
    sockets.cut();
    http.closeAllConnections();
    await closed;
    await service.runs.stop();
    await profiles?.flush();
    await release(Math.max(0, latestAt - performance.now()));
  };
  return {
    url: urlOf(certificate ? "https" : "http", host, (http.address() as AddressInfo).port),
    models: () => service.directory.list().map(({ info }) => info),
    reload,
    close: (graceMs = current.grace) => (closing ??= close(graceMs)),
  };
}

function urlOf(scheme: "http" | "https", host: string, port: number): string {
  const shown = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "[::1]" : host.includes(":") ? `[${host}]` : host;
  return `${scheme}://${shown}:${port}`;
}

function after(ms: number): { readonly promise: Promise<void>; cancel(): void } {
  let timer: NodeJS.Timeout | undefined;
  const promise = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return { promise, cancel: () => clearTimeout(timer) };
}

/** The API inside another server. It is itself the `(request, response)` function of node:http and Express; docs/serving.md has recipes of frameworks. */
export interface Handler extends EmbeddedHandler {
  (request: IncomingMessage, response: ServerResponse): void;
}

/**
 * A handler for the paths of the API, with and without `/v1`. Of the configuration, what concerns listening (`host`, `port`, time-outs,
 * `logStream`) does not apply; pages of every origin may call unless `corsOrigin` is set. The page that `truewire serve` shows to browsers
 * is not part of it: what people see there is the framework's.
 * Throws `ConfigError` for an invalid configuration.
 *
 * @example
 * import { createHandler } from "truewire/server";
 *
 * const handler = createHandler({
 *   models: [{ kind: "program", name: "count", program: ({ messages }) => `You said ${messages.length} things.` }],
 * });
 * // As a function of the web's; `http.createServer(handler)` and `app.use(handler)` serve the same.
 * const response = await handler.fetch(
 *   new Request("http://localhost/v1/chat/completions", {
 *     method: "POST",
 *     headers: { "content-type": "application/json" },
 *     body: JSON.stringify({ model: "count", messages: [{ role: "user", content: "Hi" }] }),
 *   }),
 * );
 * console.log((await response.json()).choices[0].message.content);
 * // → You said 1 things.
 * await handler.close();
 */
export function createHandler(config: TruewireConfig, options: HandlerOptions = {}): Handler {
  const { answer, ...handler } = openHandler(config, options, nodeRuntime);
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(new NodeExchange(request, response, { basePath: options.basePath ?? "" }));
  };
  return Object.assign(take, handler);
}

/** Whether responses are Node's own: Bun and Deno have others. */
const framesChunks = process.versions["bun"] === undefined && process.versions["deno"] === undefined;

const pageFolder = new URL("../../page/", import.meta.url);

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  svg: "image/svg+xml",
};

/** Reads the files of the built page; `undefined` if the sources run without a build, as in tests. */
async function readPage(): Promise<PageFiles | undefined> {
  const names: readonly string[] = await readdir(pageFolder).catch(() => []);
  if (!names.includes("page.js")) return undefined;
  const files = await Promise.all(
    names.flatMap((name) => {
      const contentType = contentTypes[name.slice(name.lastIndexOf(".") + 1)];
      return contentType === undefined ? [] : [readPageFile(name, contentType)];
    }),
  );
  return new Map(files);
}

async function readPageFile(name: string, contentType: string): Promise<[string, PageFile]> {
  const text = await readFile(new URL(name, pageFolder), "utf8");
  const etag = `"${createHash("sha256").update(text).digest("base64url")}"`;
  return [name, { contentType, text, etag }];
}
