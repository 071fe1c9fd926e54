import type { Config } from "../config/schema.ts";
import { usableCores } from "./usable-cores.ts";

/**
 * How many processes serve a configuration: as many as it says. Else one where a local model or a program does the work, which has threads
 * or a process of its own; a server that only passes answers on is held back by its single core, and gets all of them.
 */
export function workerCount(
  { workers, models }: Pick<Config, "workers" | "models">,
  cores: number = usableCores(),
): number {
  return workers ?? (models.every(({ kind }) => kind === "upstream") ? cores : 1);
}
