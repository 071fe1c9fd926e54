import { noKey, sourceId } from "../server/turn-key.ts";
import { StoredTurns } from "../server/stored-turns.ts";
import type { TruewireConfig } from "../config/config.ts";
import { parseConfig } from "../config/schema.ts";
import type { Config } from "../config/schema.ts";
import { openTracing } from "../server/tracing/tracing.ts";
import type { HttpExchange } from "../server/exchange.ts";
import { FetchExchange } from "../server/fetch-exchange.ts";
import { BatchRunner } from "../server/batches/batch-runner.ts";
import { handle } from "../server/handle.ts";
import { ConfigError } from "../config/config-error.ts";
import { consoleErrors, silentLog } from "../server/log.ts";
import type { Log } from "../server/log.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import { maskedLog } from "../server/mask.ts";
import { BodyBudget } from "../server/body-budget.ts";
import { Runs } from "../server/runs.ts";
import { RunningAnswers } from "../server/running-answers.ts";
import { briefly, Requests } from "../server/service.ts";
import type { OpenedService } from "../server/service.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import { AssembledTexts } from "../server/client-stores.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import {
  noStore,
  openFileStoreOf,
  openLimiterOf,
  openStoreOf,
  openTurnStoreOf,
  turnLimitsOf,
} from "./open-store-of.ts";
import { EnginePool } from "./engine-pool.ts";
import { clientFilesOf } from "./server-files.ts";
import { HostedTools, openHookOf } from "./hosted-tools.ts";
import { PoolControl } from "./pool-control.ts";
import type { Observing } from "./open-observing.ts";
import type { Runtime } from "./runtime.ts";
import { openTurnKey } from "./open-turn-key.ts";
import { checkRoutes, settingsOf } from "./settings-of-config.ts";

/** The API inside another server. */
export interface EmbeddedHandler {
  /** The fetch handler for Hono, Next.js, Bun, Deno and Workers. Needs no `this`. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Opens the models now instead of at the first request. Rejects if a model cannot be opened; an upstream that is down is retried. */
  ready(): Promise<void>;
  /** Lets open answers finish within `graceMs` (default: the configuration's `grace`), and releases the models. */
  close(graceMs?: number): Promise<void>;
}

export interface HandlerOptions {
  /** Where to log; default: errors to `console.error`, without texts of clients. `false`: nowhere. */
  readonly log?: Log | false;
  /** Prefix of the API's paths (`/api/ai`), if the framework does not remove it. */
  readonly basePath?: string;
}

/**
 * A handler without the forms that its runtime adds. `answer` never rejects.
 *
 * @internal
 */
export interface OpenHandler extends EmbeddedHandler {
  answer(exchange: HttpExchange): Promise<void>;
}

/**
 * Throws `ConfigError` for an invalid configuration.
 *
 * @internal
 */
export function openHandler(config: TruewireConfig, options: HandlerOptions, runtime: Runtime): OpenHandler {
  const parsed = parseConfig(config);
  const { basePath = "" } = options;
  if (parsed.managedKeys)
    throw new ConfigError([{ path: ["managedKeys"], message: "is a setting of truewire serve and createServer" }]);
  const settings = settingsOf(parsed, { keys: parsed.keys, prices: new Map() }, true);
  const log = maskedLog(options.log === false ? silentLog : (options.log ?? consoleErrors), () => settings.mask);
  const ownLimiter = new MemoryLimiter();
  const turns = parsed.sessions.memory
    ? new StoredTurns(turnLimitsOf(parsed), parsed.store.at !== "memory", log)
    : undefined;
  const pool = new EnginePool({
    log,
    runtime,
    turns,
    store: () => service.stores.store,
    sourceId: (text) => sourceId(service.stores.turnKey, text),
  });
  const hosted = new HostedTools(log, runtime, (...call) => service.watchers.metrics?.observeHostedCall(...call));
  const service: OpenedService = {
    state: "loading",
    admin: { control: new PoolControl({ pool, directory: () => service.directory }) },
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
      limiter: ownLimiter,
    },
    runs: new Runs(),
    answers: new RunningAnswers(),
    watchers: {},
  };
  const open = async (): Promise<ModelDirectory> => {
    if (parsed.keysFile !== undefined || parsed.pricesFile !== undefined)
      service.settings = settingsOf(parsed, await clientFilesOf(parsed, runtime), true);
    if (!observing) Object.assign(service.watchers, (observing = await openObserving(parsed, runtime, turns)).of);
    if (service.stores.store === noStore) {
      service.stores.store = await openStoreOf(parsed, log, runtime);
      service.stores.files = await openFileStoreOf(parsed, log, runtime);
      const turnStore = turns && (await openTurnStoreOf(parsed, runtime));
      if (turnStore) turns.use(turnStore);
    }
    if (service.stores.turnKey === noKey) service.stores.turnKey = await openTurnKey(parsed, log, runtime);
    if (service.stores.limiter === ownLimiter) service.stores.limiter = await openLimiterOf(parsed, log, runtime);
    if (!service.hostedTools) {
      const { executors, commit } = await hosted.prepare(parsed);
      commit();
      service.hostedTools = executors;
    }
    service.hook ??= await openHookOf(parsed, log, runtime);
    return pool.use(parsed, false, (directory) => checkRoutes(parsed, directory));
  };
  let observing: Observing | undefined;
  let opening: Promise<void> | undefined;
  const ready = (): Promise<void> =>
    (opening ??= open().then(
      (directory) => {
        service.directory = directory;
        service.state = "ready";
        service.batches = BatchRunner.start(service, parsed.batchConcurrency);
      },
      (error: unknown) => {
        // The next request tries again: an upstream may have been down.
        opening = undefined;
        throw error;
      },
    ));
  let logged: string | undefined;
  const answer = async (exchange: HttpExchange): Promise<void> => {
    if (service.state === "loading") {
      await ready().catch((error: unknown) => {
        // Every request tries again, and would log the same.
        if (logged !== String(error)) log.error({ error: (logged = String(error)) }, "a model could not be opened");
      });
    }
    await handle(exchange, service);
  };
  return {
    answer,
    fetch(request: Request): Promise<Response> {
      const exchange = new FetchExchange(request, basePath);
      void answer(exchange);
      return exchange.response;
    },
    ready,
    async close(graceMs: number = parsed.grace): Promise<void> {
      service.state = "closing";
      const latestAt = performance.now() + graceMs + 1000;
      service.runs.close();
      await service.batches?.close();
      await pool.close(graceMs);
      await hosted.close();
      await service.hook?.close();
      await service.runs.stop();
      await turns?.close(Math.max(0, latestAt - performance.now()));
      await service.stores.store.close();
      await service.stores.files?.store.close();
      await service.stores.limiter.close();
      await observing?.close();
    },
  };
}

/**
 * For a handler inside another server: metrics only if the configuration turns them on, and traces through what that server has
 * registered.
 */
async function openObserving(
  { metrics: access = "off" }: Config,
  runtime: Runtime,
  turns: StoredTurns | undefined,
): Promise<Observing> {
  const metrics = access === "off" ? undefined : (await runtime.metrics()).openMetrics(turns);
  const environment = typeof process === "undefined" ? {} : process.env;
  return {
    of: { tracing: openTracing(environment), metrics },
    async close() {
      metrics?.close();
    },
  };
}

/** Throws an error of one sentence for a part that needs Node. */
function missing(what: string, instead: string): () => never {
  return () => {
    throw new Error(`${what} needs Node. ${instead}`);
  };
}

/** The parts for runtimes without Node: upstreams are called with `fetch`. */
const webRuntime: Runtime = {
  localModels: missing("A local model", "Serve it with `truewire serve` and name its URL as an upstream."),
  programEngine: missing(
    "A program that is named by its file",
    "Import the module and pass its default export as `program`.",
  ),
  transport: () => import("../../engines/upstream/fetch-transport.ts"),
  background: () => Promise.resolve({ openBackground: undefined }),
  awsKeys: missing("`auth: aws`", "Pass a key of Bedrock as `key`."),
  commands: missing("A key that a command prints", "Pass the key as `key`."),
  certificates: missing("A certificate that is named by its file", "fetch has no TLS options."),
  clientFiles: missing("A file of keys or prices", "Pass its entries as `keys` or `prices`."),
  stores: missing("A store in a folder or in Redis", "Leave `store` at `memory`, and leave `sharedLimits` out."),
  hostedTools: missing("`hostedTools`", "Leave it out."),
  hook: missing("`hook`", "Leave it out."),
  metrics: missing("`metrics`", "Leave it off."),
};

/**
 * The handler of `createHandler` for browsers, Workers and other runtimes without Node. It serves upstreams, which are called with `fetch`,
 * and programs that are passed as functions. Where a configuration needs Node (local models, files, Redis, metrics), `ready` rejects with
 * an Error that names the part.
 * Throws `ConfigError` for an invalid configuration.
 *
 * @example
 * import { createFetchHandler } from "truewire/fetch";
 *
 * const handler = createFetchHandler({
 *   models: [{ kind: "program", name: "count", program: ({ messages }) => `You said ${messages.length} things.` }],
 * });
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
export function createFetchHandler(config: TruewireConfig, options: HandlerOptions = {}): EmbeddedHandler {
  const { answer: _, ...handler } = openHandler(config, options, webRuntime);
  return handler;
}
