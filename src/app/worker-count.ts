import type { Config } from "../config/schema.ts";
import { wantsInspector } from "./inspector-of-config.ts";
import { usableCores } from "./usable-cores.ts";

/**
 * How many processes serve a configuration: as many as it says. Else one where a local model or a program does the work, which has threads
 * or a process of its own, and where requests are kept to be looked at, which one process does; a server that only passes answers on is
 * held back by its single core, and gets all of them.
 */
export function workerCount(config: Config, cores: number = usableCores()): number {
  const { workers, models } = config;
  if (workers !== undefined) return workers;
  return models.every(({ kind }) => kind === "upstream") && !wantsInspector(config) ? cores : 1;
}
