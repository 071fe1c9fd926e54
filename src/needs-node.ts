/**
 * What a bundle for the web (browsers, Workers) holds in place of the files that need Node: `browser` in package.json names them. Each
 * function has the name of the one that it replaces, and says in one sentence what is not to be had there.
 */

function missing(what: string, instead: string): () => never {
  return () => {
    throw new Error(`${what} needs Node: this is a bundle for the web. ${instead}`);
  };
}

/** In place of app/models/local-models.ts. */
export const openLocalModels: () => never = missing(
  "A local model",
  "Serve it with `truewire serve` and name its URL as an upstream.",
);

/** In place of engines/program/open-program-engine.ts. */
export const openProgramEngine: () => never = missing(
  "A program that is named by its file",
  "Import the module and pass its default export as `program`.",
);

/** In place of app/certificates.ts. */
export const readCertificates: () => never = missing(
  "A certificate that is named by its file",
  "fetch has no TLS options.",
);

/** In place of guarded-downloads.ts. */
export const openDownloads: () => never = missing(
  "downloadImage",
  "Only there can the address that a URL leads to be checked before it is connected to.",
);

const store = missing("A store in a folder or in Redis", "Leave `store` at `memory`.");

/** In place of kv/folder-store.ts and kv/redis-store.ts. */
export const openFolderStore: () => never = store;
export const openRedisStore: () => never = store;

/** In place of kv/redis-limiter.ts. */
export const openRedisLimiter: () => never = missing(
  "Counting limits in Redis",
  "Leave `sharedLimits` out: each instance then counts for itself.",
);

/** In place of config/read-keys-file.ts. */
export const readKeysFile: () => never = missing("A file of keys", "Pass its entries as `keys`.");

const server = missing("createServer", "Use createHandler(config).fetch, with the runtime's own server around it.");

/**
 * In place of app/checking/open-checker.ts, app/read-page.ts, server/descriptor-limit.ts, server/listen.ts,
 * server/logger.ts, server/stream-log.ts and server/web-sockets.ts.
 */
export const openChecker: () => never = server;
export const readPage: () => never = server;
export const readServerCertificate: () => never = server;
export const descriptorLimit: () => never = server;
export const listen: () => never = server;
export const openLog: () => never = server;
export const openStreamLog: () => never = server;
export const openWebSockets: () => never = server;

/** In place of server/metrics/open-metrics.ts and server/tracing/export-traces.ts. */
export const openMetrics: () => never = missing("`metrics`", "Leave it off.");
export const exportTraces: () => never = server;
