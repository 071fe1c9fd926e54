import { StringDecoder } from "node:string_decoder";
import { buildConnector, Pool } from "undici";
import { openTransport as openFetchTransport } from "./fetch-transport.ts";
import type { UpstreamOptions } from "./options.ts";
import { sparingDescriptors } from "./spare-descriptors.ts";
import type { Transport } from "./transport.ts";

/** Asks through undici: its streams cost a fraction of what those of `fetch` do, and it knows TLS options. */
export function openTransport(origin: string, options: UpstreamOptions): Transport {
  // Bun replaces undici by a stub, which lacks what is needed here.
  if (typeof Pool.prototype.dispatch !== "function") return openFetchTransport(origin, options);
  const { tls, timeouts } = options;
  const connector = buildConnector({
    timeout: timeouts?.connect ?? 10_000,
    ...(tls?.ca !== undefined && { ca: tls.ca }),
    ...(tls?.cert !== undefined && { cert: tls.cert }),
    ...(tls?.key !== undefined && { key: tls.key }),
    ...(tls?.serverName !== undefined && { servername: tls.serverName }),
    ...(tls?.verify === false && { rejectUnauthorized: false }),
  });
  const pool = new Pool(origin, {
    // Every stream has a connection of its own; idle ones are kept for the next, but shorter than servers keep them.
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 4000,
    headersTimeout: timeouts?.firstEvent ?? 600_000,
    bodyTimeout: timeouts?.idle ?? 120_000,
    connect: sparingDescriptors(connector, options.descriptorLimit),
  });
  return {
    sharesTimers: true,
    // Attempts keep their own time-outs (see Watch), with better messages.
    dispatch: (request, handler) => void pool.dispatch({ ...request, headersTimeout: 0, bodyTimeout: 0 }, handler),
    request: (request) => pool.request(request),
    decoder: () => new StringDecoder("utf8"),
    destroy: () => pool.destroy(),
  };
}
