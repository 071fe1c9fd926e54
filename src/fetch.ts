import type { TruewireConfig } from "./config/config.ts";
import { openHandler } from "./app/open-handler.ts";
import type { EmbeddedHandler, HandlerOptions } from "./app/open-handler.ts";
import type { Runtime } from "./app/runtime.ts";

/** The API as a fetch handler for runtimes without Node (`truewire/fetch`). */
export type { EmbeddedHandler, HandlerOptions } from "./app/open-handler.ts";

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
  transport: () => import("./engines/upstream/fetch-transport.ts"),
  certificates: missing("A certificate that is named by its file", "fetch has no TLS options."),
  keysFile: missing("A file of keys", "Pass its entries as `keys`."),
  stores: missing("A store in a folder or in Redis", "Leave `store` at `memory`, and leave `sharedLimits` out."),
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
