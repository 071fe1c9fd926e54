import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, extname, resolve } from "node:path";
import type { Observe } from "../../core/observe.ts";
import type { Engine } from "../../core/engine.ts";
import type { Format } from "../../formats/format.ts";
import { plainText } from "../../formats/plain-text.ts";
import { ProgramLoadError } from "./classify-program.ts";
import { ProgramEngine } from "./program-engine.ts";
import type { ProgramRunner } from "./program-engine.ts";
import { watchProgram } from "./watch-program.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface ProgramEngineOptions {
  /** A module's path. For a program that is already in memory, see open-local-program.ts. */
  readonly program: string;
  /** The model's name for clients; default: the file's name without its extension. */
  readonly name?: string;
  /** How to read tool calls and reasoning that the program leaves in its text; default: not at all. */
  readonly format?: Format;
  /** Tell clients the words of any exception; default: only of those that are meant for them. */
  readonly showErrors?: boolean;
  /** Threads for a program that is a plain function; default: the machine's parallelism, at least 2. */
  readonly threads?: number;
  /** Load the module anew when it, or a file beside it, changes. */
  readonly watch?: boolean;
  readonly log?: Observe;
}

/** Opens a user's program as an engine. Throws `ProgramLoadError` when it cannot be loaded. */
export async function openProgramEngine(options: ProgramEngineOptions): Promise<Engine> {
  const { program, name = basename(program, extname(program)) } = options;
  return new ProgramEngine(await moduleRunner(program, options), name);
}

async function moduleRunner(module: string, options: ProgramEngineOptions): Promise<ProgramRunner> {
  const path = resolve(module);
  if (!existsSync(path)) throw new ProgramLoadError(`${module} does not exist.`);
  const setup = { path, format: options.format ?? plainText, showErrors: options.showErrors ?? false };
  const limit = options.threads ?? Math.max(2, availableParallelism());
  let pool = await WorkerPool.open(setup, limit, options.log);
  const watcher = options.watch
    ? watchProgram(path, async () => {
        try {
          const next = await WorkerPool.open(setup, limit, options.log);
          const old = pool;
          pool = next;
          options.log?.(`${module} loaded anew`, "info");
          await closeWhenIdle(old);
        } catch (error) {
          options.log?.(
            `${error instanceof Error ? error.message : String(error)} The version before goes on.`,
            "warn",
          );
        }
      })
    : undefined;
  return {
    models: pool.models,
    run: (request, signal) => pool.run(request, signal),
    load: () => ({ slots: pool.threads, queued: pool.queued }),
    close: async () => {
      watcher?.close();
      await pool.close();
    },
  };
}

/** A replaced version finishes the requests that it has begun. */
async function closeWhenIdle(pool: WorkerPool): Promise<void> {
  while (pool.running > 0 || pool.queued > 0) await new Promise((resolve) => setTimeout(resolve, 100).unref());
  await pool.close();
}
