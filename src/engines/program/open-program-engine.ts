import { existsSync, type FSWatcher, watch } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, extname, resolve } from "node:path";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import type { Engine } from "../../wire/core/engine.ts";
import { type Format, plainText } from "../../text/formats/format.ts";
import { ProgramLoadError } from "./classify-program.ts";
import { ProgramEngine, type ProgramRunner } from "./program-engine.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface ProgramEngineOptions {
  /** A module's path. For a program in memory, see `openLocalProgram`. */
  readonly program: string;
  /** The model's name for clients; default: the file's name without its extension. */
  readonly name?: string;
  /** The format of tool calls and reasoning in the program's text; default: none. */
  readonly format?: Format;
  /** Clients see the message of any exception; default: only of a `RequestError`. */
  readonly showErrors?: boolean;
  /** Threads for a program that is a plain function; default: the machine's parallelism, at least 2. */
  readonly threads?: number;
  /** Reload the module when it, or code in its folder, changes. */
  readonly watch?: boolean;
  readonly log?: LogListener;
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
          options.log?.(`${module} reloaded`, "info");
          await closeWhenIdle(old);
        } catch (error) {
          options.log?.(
            `${error instanceof Error ? error.message : String(error)} The previous version stays in use.`,
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

/** Waits until a replaced version has finished its requests. */
async function closeWhenIdle(pool: WorkerPool): Promise<void> {
  while (pool.running > 0 || pool.queued > 0) await new Promise((resolve) => setTimeout(resolve, 100).unref());
  await pool.close();
}

/** Editors write a file in several steps: the module is reloaded after this time without a change. */
const quietMs = 100;

/** Code that a program may import. Other files, such as a log in the same folder, may change all the time. */
const isCode = /\.[cm]?[jt]sx?$/i;

/** Calls `changed` when code in a program's folder, except dependencies, has changed. Calls do not overlap. */
function watchProgram(path: string, changed: () => Promise<void>): FSWatcher {
  let timer: NodeJS.Timeout | undefined;
  let working = Promise.resolve();
  return watch(dirname(path), { recursive: true, persistent: false }, (_event, file) => {
    if (file !== null && (!isCode.test(file) || /(^|[\\/])(node_modules|\.git)([\\/]|$)/.test(file))) return;
    clearTimeout(timer);
    timer = setTimeout(() => (working = working.then(changed)), quietMs);
    timer.unref();
  });
}
