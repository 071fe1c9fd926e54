import type { ProgramModelConfig } from "../config/model-schema.ts";
import { openLocalProgram } from "../../engines/program/program-engine.ts";
import type { LocalProgramOptions } from "../../engines/program/program-engine.ts";
import { formatOf } from "./format-of.ts";
import type { Engine } from "../../wire/core/engine.ts";
import { observerOf } from "./open-options.ts";
import type { PoolOptions } from "./runtime.ts";

/** Opens a user's program: a module runs in its own threads, a function in this one. Throws `ProgramLoadError`. */
export async function openProgramModel(model: ProgramModelConfig, name: string, options: PoolOptions): Promise<Engine> {
  const { program, toolFormat } = model;
  const format = toolFormat === undefined ? undefined : formatOf(toolFormat);
  const settings = { ...model, name, format, log: observerOf(options.log, name) };
  if (typeof program !== "string") {
    // The engine checks what it was given, and says what it expected.
    return openLocalProgram({ ...settings, program: program as LocalProgramOptions["program"] });
  }
  const { openProgramEngine } = await options.runtime.programEngine();
  return openProgramEngine({ ...settings, program });
}
