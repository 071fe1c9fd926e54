/** The server and what else needs Node (`truewire/server`). */
export { createServer, createHandler } from "./app/create-server.ts";
export type { Handler, ServerOptions, TruewireServer } from "./app/create-server.ts";
export type { EmbeddedHandler, HandlerOptions } from "./app/open-handler.ts";
export type {
  AdapterEntry,
  DraftEntry,
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
  UpstreamOllama,
  UpstreamRequests,
  UpstreamTimeouts,
  UpstreamTls,
  WireName,
} from "./config/config.ts";
export type { SessionOptions, StoreOptions } from "./config/config.ts";
export type { FallbackReason } from "./core/failure.ts";
export type { QueueTier } from "./core/request.ts";
export type { Log, LogFields } from "./server/log.ts";
export { downloadImage } from "./engines/upstream/background/download-image.ts";
export type { DownloadImageOptions } from "./engines/upstream/background/download-image.ts";
export type { OpenOptions } from "./app/open-options.ts";
