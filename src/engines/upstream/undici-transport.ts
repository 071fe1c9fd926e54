import { StringDecoder } from "node:string_decoder";
import { pipeline, Readable } from "node:stream";
import { Pool } from "undici";
import type { buildConnector, Client, Dispatcher } from "undici";
import { openTransport as openFetchTransport } from "./fetch-transport.ts";
import type { UpstreamOptions } from "./options.ts";
import type { Transport, TransportAnswer, Unpacker, UnpackerSink } from "./transport.ts";
import { isLost } from "./transport-failure.ts";
import { UpstreamClient } from "./undici-client.ts";
import type { UpstreamDispatchOptions } from "./undici-client.ts";
import { closeSync, openSync } from "node:fs";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { BrotliDecompress, Gunzip, Inflate } from "node:zlib";

/** Sends requests with undici: its streams cost a fraction of those of `fetch`, and it has TLS options. */
export function openTransport(origin: string, options: UpstreamOptions): Transport {
  // Bun replaces undici by a stub without `dispatch`.
  if (typeof Pool.prototype.dispatch !== "function") return openFetchTransport(origin, options);
  const { tls, timeouts } = options;
  const connection = {
    timeout: timeouts?.connect ?? 10_000,
    ...(tls?.ca !== undefined && { ca: tls.ca }),
    ...(tls?.cert !== undefined && { cert: tls.cert }),
    ...(tls?.key !== undefined && { key: tls.key }),
    ...(tls?.serverName !== undefined && { servername: tls.serverName }),
    ...(tls?.verify === false && { rejectUnauthorized: false }),
  };
  const poolOptions = {
    // Each stream has a connection of its own. Idle connections are reused, but for a shorter time than servers keep them.
    connections: null,
    pipelining: 1,
    keepAliveTimeout: 4000,
    headersTimeout: timeouts?.firstEvent ?? 600_000,
    bodyTimeout: timeouts?.idle ?? 120_000,
    factory: (url: URL, clientOptions: object) =>
      new UpstreamClient(url, {
        client: clientOptions as Client.Options,
        connection,
        wrapConnector: (connector) => sparingDescriptors(connector, options.descriptorLimit),
      }),
  };
  const pool = new Pool(origin, poolOptions);
  // Each of its connections serves one request.
  const freshPool = new Pool(origin, poolOptions);
  const request = async (options: Parameters<Transport["request"]>[0]): Promise<TransportAnswer> => {
    const answer = await pool.request(options).catch((error: unknown) => {
      // The server may have closed an idle connection just as the request was sent, and a repetition has no side effect.
      if (!isLost(error)) throw error;
      return freshPool.request({ ...options, reset: true });
    });
    return unpacked(answer);
  };
  return {
    sharesTimers: true,
    afterReads,
    // Attempts have time-outs of their own (see `Watch`), with better messages.
    dispatch({ method, path, headers, body, fresh = false, onReusedConnection }, handler) {
      const from = fresh ? freshPool : pool;
      const always = { reset: fresh, headersTimeout: 0, bodyTimeout: 0, copiesBytes: true };
      const options: Dispatcher.DispatchOptions & UpstreamDispatchOptions =
        body === undefined ? { method, path, headers, ...always } : { method, path, headers, body, ...always };
      if (onReusedConnection) Object.assign(options, { onReusedConnection });
      from.dispatch(options, handler);
    },
    request,
    pass: ({ method, body = null, ...request }) =>
      pool.request({ ...request, method: method as Dispatcher.HttpMethod, body: body && Readable.from(body) }),
    decoder: () => new StringDecoder("utf8"),
    unpacker: (encoding, sink) => (isPacked(encoding) ? openUnpacker(encoding, sink) : null),
    destroy: async () => {
      await Promise.all([pool.destroy(), freshPool.destroy()]);
    },
  };
}

let reads: (() => void)[] = [];

/**
 * One turn of the event loop reads all sockets that have data. The answers are handled after that, together, so that they are written one
 * directly after the other: a client process that receives several of them is then still awake for the next one. To wake it up each time
 * costs more than the write itself.
 */
function afterReads(read: () => void): void {
  if (reads.push(read) === 1) setImmediate(runReads);
}

function runReads(): void {
  const all = reads;
  reads = [];
  for (const read of all) {
    try {
      read();
    } catch (error) {
      // An unhandled rejection, as of an `async` function: the other answers go on.
      void Promise.reject(error);
    }
  }
}

function unpacked(answer: Dispatcher.ResponseData): TransportAnswer {
  const { statusCode, headers, body } = answer;
  const encoding = headers["content-encoding"];
  if (!isPacked(encoding)) return answer;
  const unpacking = unpackingStream(encoding);
  // The reader of the last stream gets the errors.
  pipeline(body, unpacking, () => {});
  return { statusCode, headers, body: Object.assign(unpacking, { dump: async () => unpacking.destroy() }) };
}

/** Enough to accept a burst of clients and refuse them with an error. */
const sparedDescriptors = 8;

/**
 * Wraps `connector` so that it does not use the process's last file descriptors. Without descriptors clients cannot be refused: their
 * connections are closed without an answer.
 */
function sparingDescriptors(connector: buildConnector.connector, limit: number | undefined): buildConnector.connector {
  if (limit === undefined) return connector;
  return (options, callback) => {
    const error = lowestFreeDescriptor() < limit - sparedDescriptors ? undefined : outOfFiles();
    // undici expects the callback after the call has returned.
    if (error) queueMicrotask(() => callback(error, null));
    else connector(options, callback);
  };
}

/**
 * The system assigns the lowest free number, so a new descriptor shows how many are in use at least. Takes 5 µs; a connection takes
 * hundreds.
 */
function lowestFreeDescriptor(): number {
  try {
    const descriptor = openSync("/dev/null", "r");
    closeSync(descriptor);
    return descriptor;
  } catch {
    return Infinity;
  }
}

function outOfFiles(): NodeJS.ErrnoException {
  return Object.assign(new Error("too many open files"), { code: "EMFILE" });
}

/** Decompresses an answer while it streams. Throws an Error for an unknown encoding. */
function openUnpacker(encoding: string, sink: UnpackerSink): Unpacker {
  const stream = unpackingStream(encoding);
  stream.on("data", (bytes: Uint8Array) => sink.data(bytes));
  stream.on("end", () => sink.end());
  stream.on("error", (error) => sink.error(error));
  stream.on("drain", () => sink.drain());
  return {
    write: (bytes) => stream.write(bytes),
    end: () => void stream.end(),
    pause: () => void stream.pause(),
    resume: () => void stream.resume(),
    destroy: () => void stream.destroy(),
  };
}

/** Throws an Error for an unknown encoding. */
function unpackingStream(encoding: string): BrotliDecompress | Gunzip | Inflate {
  switch (encoding.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "br":
      return createBrotliDecompress();
    case "deflate":
      return createInflate();
    default:
      throw new Error(`it has the content encoding '${encoding}', which was not requested and is not supported`);
  }
}

/** Whether a header `content-encoding` names a compression. */
function isPacked(encoding: unknown): encoding is string {
  return typeof encoding === "string" && encoding.trim() !== "" && encoding.trim().toLowerCase() !== "identity";
}
