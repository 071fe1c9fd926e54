import type { ProgramModelConfig } from "./config/model-schema.ts";
import { openProgramEngine } from "./engines/program/open-program-engine.ts";
import type { ProgramEngineOptions } from "./engines/program/open-program-engine.ts";
import { formatOf } from "./format-of.ts";
import type { Engine } from "./generation/engine.ts";
import type { OpenOptions } from "./open-engine.ts";

/** Opens a user's program. Throws `ProgramLoadError` when it cannot be loaded. */
export async function openProgramModel(model: ProgramModelConfig, name: string, options: OpenOptions): Promise<Engine> {
  const { watch, threads, toolFormat } = model;
  return openProgramEngine({
    // What it may be, the engine itself finds out: it says so when it is none of them.
    program: model.program as ProgramEngineOptions["program"],
    name,
    ...(watch !== undefined && { watch }),
    ...(threads !== undefined && { threads }),
    ...(toolFormat !== undefined && { format: formatOf(toolFormat) }),
    log: (line) => options.log.info({ model: name }, line),
  });
}
