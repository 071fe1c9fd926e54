import { StringDecoder } from "node:string_decoder";
import { pipeline } from "node:stream";
import { buildConnector, Client, Pool } from "undici";
import type { Dispatcher } from "undici";
import { openTransport as openFetchTransport } from "./fetch-transport.ts";
import type { UpstreamOptions } from "./options.ts";
import { sparingDescriptors } from "./spare-descriptors.ts";
import type { Transport, TransportAnswer, TransportRequest } from "./transport.ts";
import { isLost } from "./transport-failure.ts";
import { isPacked, openUnpacker, unpackingStream } from "./unpack.ts";

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
  const poolOptions = {
    // Every stream has a connection of its own; idle ones are kept for the next, but shorter than servers keep them.
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 4000,
    headersTimeout: timeouts?.firstEvent ?? 600_000,
    bodyTimeout: timeouts?.idle ?? 120_000,
    connect: sparingDescriptors(connector, options.descriptorLimit),
  };
  const pool = new Pool(origin, {
    ...poolOptions,
    factory: (url, clientOptions) => new ReuseTellingClient(url, clientOptions as Client.Options),
  });
  // Its connections serve one request each.
  const freshPool = new Pool(origin, poolOptions);
  const ask = async (request: Parameters<Transport["request"]>[0]): Promise<TransportAnswer> => {
    const answer = await pool.request(request).catch((error: unknown) => {
      // Asking twice does no harm here, and the server may have closed an idle connection just as the request went out.
      if (!isLost(error)) throw error;
      return freshPool.request({ ...request, reset: true });
    });
    return unpacked(answer);
  };
  return {
    sharesTimers: true,
    // Attempts keep their own time-outs (see Watch), with better messages.
    dispatch({ method, path, headers, body, fresh = false, onReusedConnection }, handler) {
      const from = fresh ? freshPool : pool;
      const always = { reset: fresh, headersTimeout: 0, bodyTimeout: 0 };
      const options: Dispatcher.DispatchOptions & Pick<TransportRequest, "onReusedConnection"> =
        body === undefined ? { method, path, headers, ...always } : { method, path, headers, body, ...always };
      if (onReusedConnection) Object.assign(options, { onReusedConnection });
      from.dispatch(options, handler);
    },
    request: ask,
    decoder: () => new StringDecoder("utf8"),
    unpacker: (encoding, sink) => (isPacked(encoding) ? openUnpacker(encoding, sink) : null),
    destroy: async () => {
      await Promise.all([pool.destroy(), freshPool.destroy()]);
    },
  };
}

/** A client (one connection after another) that tells a request when its connection has served before. */
class ReuseTellingClient extends Client {
  #served = 0;

  constructor(url: string | URL, options: Client.Options) {
    super(url, options);
    // A connection is opened for a request that waits for it.
    this.on("connect", () => (this.#served = 1));
    this.on("disconnect", () => (this.#served = 0));
  }

  override dispatch(
    options: Dispatcher.DispatchOptions & Pick<TransportRequest, "onReusedConnection">,
    handler: Dispatcher.DispatchHandler,
  ): boolean {
    if (this.#served++ > 0) options.onReusedConnection?.();
    return super.dispatch(options, handler);
  }
}

function unpacked(answer: Dispatcher.ResponseData): TransportAnswer {
  const { statusCode, headers, body } = answer;
  const encoding = headers["content-encoding"];
  if (!isPacked(encoding)) return answer;
  const unpacking = unpackingStream(encoding);
  // Errors reach whoever reads the last one.
  pipeline(body, unpacking, () => {});
  return { statusCode, headers, body: Object.assign(unpacking, { dump: async () => unpacking.destroy() }) };
}
