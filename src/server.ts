/** The server and what else needs Node (`truewire/server`). */
export { createServer, createHandler } from "./serve/app/create-server.ts";
export type { Handler, ServerOptions, TruewireServer } from "./serve/app/create-server.ts";
export type { EmbeddedHandler, HandlerOptions } from "./serve/app/open-handler.ts";
export type {
  EngineModel,
  HostedToolsOptions,
  KeyEntry,
  LocalModel,
  ModelEntry,
  ProgramModel,
  TruewireConfig,
  UpstreamModel,
} from "./serve/config/config.ts";
export type { HostedProgram, HostedProgramInput } from "./wire/core/hosted-program.ts";
export type { FallbackReason } from "./wire/core/failure.ts";
export type { QueueTier } from "./wire/core/request.ts";
export type { Log, LogFields } from "./serve/server/log.ts";
export { downloadImage } from "./engines/upstream/background/download-image.ts";
export type { DownloadImageOptions } from "./engines/upstream/background/download-image.ts";
export type { ImageBytes } from "./wire/apis/adapt/fit-media.ts";
export type { OpenOptions } from "./serve/app/open-options.ts";
