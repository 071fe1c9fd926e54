export { createServer } from "./create-server.ts";
export type { ServerOptions, TruewireServer } from "./create-server.ts";
export { createHandler } from "./create-handler.ts";
export type { Handler, HandlerOptions } from "./create-handler.ts";
export { ConfigError } from "./config/config-error.ts";
export type { ConfigProblem } from "./config/config-error.ts";
export type {
  AnswerOptions,
  EngineModel,
  GenerationDefaults,
  LocalModel,
  LogLevel,
  ModelEntry,
  ProgramModel,
  TruewireConfig,
  UpstreamModel,
  WireName,
} from "./config/config.ts";
export type { Log } from "./server/log.ts";
export { defineProgram, RequestError } from "./engines/program/program.ts";
export type {
  Program,
  ProgramEvent,
  ProgramInput,
  ProgramItem,
  ProgramMessage,
  ProgramResult,
  ProgramReturn,
  ProgramTool,
} from "./engines/program/program.ts";
