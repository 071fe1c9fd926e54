import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, extname, resolve } from "node:path";
import type { Engine, EngineHealth, ModelInfo } from "../../generation/engine.ts";
import type { EndEvent, GenerationEvent } from "../../generation/event.ts";
import type { GenerationRequest } from "../../generation/request.ts";
import type { Format } from "../../formats/format.ts";
import { plainText } from "../../formats/plain-text.ts";
import { toolCallId } from "../../wire/ids.ts";
import { classify, ProgramLoadError } from "./load-program.ts";
import type { LanguageModel } from "./language-model.ts";
import type { Program } from "./program.ts";
import { runProgram } from "./run-program.ts";
import { watchProgram } from "./watch-program.ts";
import { WorkerPool } from "./worker-pool.ts";

export interface ProgramEngineOptions {
  /** A module's path, or the program itself (which then runs in this thread: it must not compute for long without an `await`). */
  readonly program: string | Program | LanguageModel;
  /** The model's name for clients; default: the file's name without its extension, or "program". */
  readonly name?: string;
  /** How to read tool calls and reasoning that the program leaves in its text; default: not at all. */
  readonly format?: Format;
  /** Threads for a program that is a plain function; default: the machine's parallelism, at least 2. */
  readonly threads?: number;
  /** Load the module anew when it, or a file beside it, changes. */
  readonly watch?: boolean;
  readonly log?: (message: string) => void;
}

/** Opens a user's program as an engine. Throws `ProgramLoadError` when it cannot be loaded. */
export async function openProgramEngine(options: ProgramEngineOptions): Promise<Engine> {
  const runner =
    typeof options.program === "string"
      ? await moduleRunner(options.program, options)
      : localRunner(options.program, options);
  return new ProgramEngine(runner, nameOf(options));
}

/** Where a program runs. */
interface Runner {
  readonly models: readonly ModelInfo[] | undefined;
  run(request: GenerationRequest, signal: AbortSignal): AsyncIterable<readonly GenerationEvent[]>;
  load(): Pick<EngineHealth, "slots" | "queued">;
  close(): Promise<void>;
}

class ProgramEngine implements Engine {
  readonly #runner: Runner;
  readonly #name: string;
  readonly #created = Math.floor(Date.now() / 1000);
  readonly #running = new Set<AbortController>();
  #closed = false;
  #idle: () => void = () => {};

  constructor(runner: Runner, name: string) {
    this.#runner = runner;
    this.#name = name;
  }

  models(): readonly ModelInfo[] {
    return (
      this.#runner.models ?? [
        { id: this.#name, created: this.#created, ownedBy: "truewire", endpoints: ["chat", "completions"] },
      ]
    );
  }

  async *generate(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    if (this.#closed) {
      yield [shutdown];
      return;
    }
    const stop = new AbortController();
    this.#running.add(stop);
    try {
      for await (const batch of this.#runner.run(request, AbortSignal.any([signal, stop.signal]))) {
        // The runner knows only that it was aborted; who did it is known here.
        yield stop.signal.aborted && !signal.aborted
          ? [...batch.filter((event) => event.type !== "end"), shutdown]
          : batch;
      }
    } finally {
      this.#running.delete(stop);
      if (this.#running.size === 0) this.#idle();
    }
  }

  health(): EngineHealth {
    return {
      state: this.#closed ? "closed" : "ready",
      ...this.#runner.load(),
      counters: { running: this.#running.size },
    };
  }

  async close(graceMs: number): Promise<void> {
    this.#closed = true;
    if (this.#running.size > 0) {
      const idle = new Promise<void>((resolve) => (this.#idle = resolve));
      const timer = setTimeout(() => this.#idle(), graceMs);
      await idle;
      clearTimeout(timer);
      for (const run of this.#running) run.abort();
    }
    await this.#runner.close();
  }
}

async function moduleRunner(module: string, options: ProgramEngineOptions): Promise<Runner> {
  const path = resolve(module);
  if (!existsSync(path)) throw new ProgramLoadError(`${module} does not exist.`);
  const setup = { path, format: options.format ?? plainText };
  const limit = options.threads ?? Math.max(2, availableParallelism());
  let pool = await WorkerPool.open(setup, limit);
  const watcher = options.watch
    ? watchProgram(path, async () => {
        try {
          const next = await WorkerPool.open(setup, limit);
          const old = pool;
          pool = next;
          options.log?.(`${module} loaded anew`);
          await closeWhenIdle(old);
        } catch (error) {
          options.log?.(`${error instanceof Error ? error.message : String(error)} The version before goes on.`);
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

function localRunner(value: Program | LanguageModel, options: ProgramEngineOptions): Runner {
  const loaded = classify(value);
  if (loaded?.kind !== "program")
    throw new ProgramLoadError("A program must be a function or an AI SDK language model.");
  const run = { format: options.format ?? plainText, newCallId: () => toolCallId(Math.random) };
  return {
    models: undefined,
    run: (request, signal) => runProgram(loaded.program, request, signal, run),
    load: () => ({}),
    close: async () => {},
  };
}

/** A version that was replaced serves what it has begun. */
async function closeWhenIdle(pool: WorkerPool): Promise<void> {
  while (pool.running > 0 || pool.queued > 0) await new Promise((resolve) => setTimeout(resolve, 100).unref());
  await pool.close();
}

function nameOf(options: ProgramEngineOptions): string {
  if (options.name !== undefined) return options.name;
  return typeof options.program === "string" ? basename(options.program, extname(options.program)) : "program";
}

const shutdown: EndEvent = {
  type: "end",
  end: { kind: "shutdown", failure: { message: "The server is shutting down.", status: 503, type: "server_error" } },
};
