import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { LoadedLibraries } from "../process/libraries-main.ts";

/** Time limit for loading libraries, in milliseconds: a driver may compile first. */
const loadMs = 60_000;

/**
 * Loads libraries in a process of its own: those of the folders, whose first has llama.cpp, or without folders what a model would use. Never
 * rejects: `failure` says why they cannot be used.
 */
export function loadLibraries(folders: readonly string[] = [], timeout: number = loadMs): Promise<LoadedLibraries> {
  // The compiled module, as for `ModelProcess`.
  const main = fileURLToPath(new URL("../process/libraries-main.js", import.meta.url));
  return new Promise((settle) => {
    execFile(process.execPath, [main, ...folders], { timeout, killSignal: "SIGKILL" }, (error, stdout) => {
      try {
        settle(JSON.parse(stdout) as LoadedLibraries);
      } catch {
        const failure = error?.killed
          ? "they take too long to load"
          : `their process ended (${error?.signal ?? error?.code ?? "no output"})`;
        settle({ variant: "unknown", failure });
      }
    });
  });
}
