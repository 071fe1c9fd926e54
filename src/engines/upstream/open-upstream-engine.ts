import type { Engine } from "../../core/engine.ts";
import type { UpstreamOptions } from "./options.ts";
import type { OpenTransport } from "./transport.ts";
import { openTransport } from "./undici-transport.ts";
import { UpstreamEngine } from "./upstream-engine.ts";

/**
 * An engine that answers from servers which speak OpenAI's API, or nearly. Resolves when its models are known; rejects with an Error
 * when they were not given and no server lists them.
 */
export async function openUpstreamEngine(
  options: UpstreamOptions,
  transport: OpenTransport = openTransport,
): Promise<Engine> {
  const engine = new UpstreamEngine(options, transport);
  await engine.open();
  return engine;
}
