/*
 * The types of a configuration in code. In the package, `scripts/write-config-types.mjs` writes them from the schema: with its notes, for
 * editors, and without the types of zod.
 */
export type { HostedToolsOptions } from "./hosted-tools-schema.ts";
export type { KeyEntry } from "./keys-schema.ts";
export type { EngineModel, LocalModel, ModelEntry, ProgramModel, UpstreamModel } from "./model-schema.ts";
export type { TruewireConfig } from "./schema.ts";
