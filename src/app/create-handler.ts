import type { IncomingMessage, ServerResponse } from "node:http";
import type { TruewireConfig } from "../config/config.ts";
import { parseConfig } from "../config/schema.ts";
import type { HttpExchange } from "../server/exchange.ts";
import { FetchExchange } from "../server/fetch-exchange.ts";
import { handle } from "../server/handle.ts";
import { silentLog } from "../server/log.ts";
import type { Log } from "../server/log.ts";
import { ModelDirectory } from "../server/model-directory.ts";
import { maskedLog } from "../server/mask.ts";
import { NodeExchange } from "../server/node-exchange.ts";
import { BodyBudget } from "../server/body-budget.ts";
import { DetachedRuns } from "../server/detached-runs.ts";
import { briefly, Requests } from "../server/service.ts";
import type { Service } from "../server/service.ts";
import { MemoryLimiter } from "../kv/memory-limiter.ts";
import { openLimiter } from "../kv/open.ts";
import { AssembledTexts } from "../server/client-stores.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import { noStore, openStoreOf } from "./open-store-of.ts";
import { EnginePool } from "./engine-pool.ts";
import { keysOf } from "./server-files.ts";
import { PoolControl } from "./pool-control.ts";
import { openObservingOfHandler } from "./open-observing.ts";
import type { Observing } from "./open-observing.ts";
import { settingsOf } from "./settings-of-config.ts";

/** The API inside another server. It is itself the `(request, response)` function of node:http, Express and Fastify. */
export interface Handler {
  (request: IncomingMessage, response: ServerResponse): void;
  /** The fetch handler for Hono, Next.js, Bun, Deno and Workers. Needs no `this`. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** Opens the models now instead of at the first request. Rejects if a model cannot be opened; an upstream that is down is retried. */
  ready(): Promise<void>;
  /** Lets open answers finish within `graceMs` (default: the configuration's `grace`), and releases the models. */
  close(graceMs?: number): Promise<void>;
}

export interface HandlerOptions {
  /** Where to log; default: nowhere. */
  readonly log?: Log;
  /** Prefix of the API's paths (`/api/ai`), if the framework does not remove it. */
  readonly basePath?: string;
}

/**
 * A handler for the paths of the API, with and without `/v1`. Of the configuration, what concerns listening (`host`, `port`, time-outs,
 * `logStream`) does not apply; pages of every origin may call unless `corsOrigin` is set. The page that `truewire serve` shows to browsers
 * is not part of it: what people see there is the framework's.
 * Throws `ConfigError` for an invalid configuration.
 *
 * @example
 * import { createHandler } from "truewire";
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
  const parsed = parseConfig(config);
  const { basePath = "" } = options;
  const settings = settingsOf(parsed, parsed.keys, true);
  const log = maskedLog(options.log ?? silentLog, () => settings.mask);
  const ownLimiter = new MemoryLimiter();
  const pool = new EnginePool({ log });
  const service: Service = {
    state: "loading",
    control: new PoolControl({ pool, directory: () => service.directory }),
    settings,
    directory: new ModelDirectory([]),
    log,
    requests: new Requests(),
    bodies: new BodyBudget(settings.bodyBudget),
    store: noStore,
    brief: new MemoryStore(briefly),
    assembled: new AssembledTexts(),
    runs: new DetachedRuns(),
    limiter: ownLimiter,
  };
  const open = async (): Promise<ModelDirectory> => {
    if (parsed.keysFile !== undefined) service.settings = settingsOf(parsed, await keysOf(parsed), true);
    if (!observing) Object.assign(service, (observing = await openObservingOfHandler(parsed)).of);
    if (service.store === noStore) service.store = await openStoreOf(parsed, log);
    if (service.limiter === ownLimiter)
      service.limiter = await openLimiter(parsed.sharedLimits, (line) => log.warn({}, line));
    return pool.use(parsed);
  };
  let observing: Observing | undefined;
  let opening: Promise<void> | undefined;
  const ready = (): Promise<void> =>
    (opening ??= open().then(
      (directory) => {
        service.directory = directory;
        service.state = "ready";
      },
      (error: unknown) => {
        // The next request tries again: an upstream may have been down.
        opening = undefined;
        log.error({ error: String(error) }, "a model could not be opened");
        throw error;
      },
    ));
  const answer = async (exchange: HttpExchange): Promise<void> => {
    if (service.state === "loading") await ready().catch(() => {});
    await handle(exchange, service);
  };
  const handler = (request: IncomingMessage, response: ServerResponse): void => {
    void answer(new NodeExchange(request, response, basePath));
  };
  return Object.assign(handler, {
    fetch(request: Request): Promise<Response> {
      const exchange = new FetchExchange(request, basePath);
      void answer(exchange);
      return exchange.response;
    },
    ready,
    async close(graceMs: number = parsed.grace): Promise<void> {
      service.state = "closing";
      await pool.close(graceMs);
      await service.runs.stop();
      await service.store.close();
      await service.limiter.close();
      await observing?.close();
    },
  });
}
