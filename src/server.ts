import type { IncomingMessage, ServerResponse } from "node:http";
import type { TruewireConfig } from "./config/config.ts";
import { NodeExchange } from "./server/node-exchange.ts";
import { openHandler } from "./app/open-handler.ts";
import type { EmbeddedHandler, HandlerOptions } from "./app/open-handler.ts";
import { nodeRuntime } from "./app/runtime.ts";

/** The server and what else needs Node (`truewire/server`). */
export { createServer } from "./app/create-server.ts";
export type { ServerOptions, TruewireServer } from "./app/create-server.ts";
export type { EmbeddedHandler, HandlerOptions } from "./app/open-handler.ts";
export type {
  AdapterEntry,
  AnswerOptions,
  Duration,
  EngineModel,
  GenerationDefaults,
  KeyEntry,
  CacheType,
  LocalModel,
  LogFormat,
  LogLevel,
  MetricsAccess,
  ModelEntry,
  ProgramModel,
  ServiceTier,
  Size,
  TruewireConfig,
  UpstreamModel,
  UpstreamRequests,
  UpstreamTimeouts,
  UpstreamTls,
  WireName,
} from "./config/config.ts";
export type { StoreOptions } from "./config/config.ts";
export type { Log, LogFields } from "./server/log.ts";
export { downloadImage } from "./library/download-image.ts";
export type { DownloadImageOptions } from "./library/download-image.ts";
export type { OpenOptions } from "./app/open-options.ts";

/** The API inside another server. It is itself the `(request, response)` function of node:http, Express and Fastify. */
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
    void answer(new NodeExchange(request, response, options.basePath ?? ""));
  };
  return Object.assign(take, handler);
}
