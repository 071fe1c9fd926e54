import { cancellable } from "../../wire/core/cancellable.ts";
import type { Engine, EngineHealth, ModelInfo } from "../../wire/core/engine.ts";
import type { EndEvent, GenerationEvent } from "../../wire/core/events.ts";
import type { GenerationRequest } from "../../wire/core/request.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";
import { type Format, plainText } from "../../text/formats/format.ts";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import { toolCallId } from "../../wire/apis/ids.ts";
import { classify, ProgramLoadError } from "./classify-program.ts";
import type { LanguageModel } from "./language-model.ts";
import type { Program } from "../../wire/apis/chat/program.ts";
import { runProgram } from "./run-program.ts";
import { random } from "../../wire/random/random.ts";

/** Runs a program in this thread or in worker threads. */
export interface ProgramRunner {
  readonly models: readonly ModelInfo[] | undefined;
  run(request: GenerationRequest, signal: AbortSignal): AsyncIterable<readonly GenerationEvent[]>;
  load(): Pick<EngineHealth, "slots" | "queued">;
  close(): Promise<void>;
}

/** A program as an engine. */
export class ProgramEngine implements Engine {
  readonly #runner: ProgramRunner;
  readonly #models: readonly ModelInfo[];
  readonly #lifecycle = new EngineLifecycle<AbortController>();

  constructor(runner: ProgramRunner, name: string) {
    this.#runner = runner;
    const created = Math.floor(Date.now() / 1000);
    this.#models = runner.models ?? [{ id: name, created, ownedBy: "truewire", endpoints: ["chat", "completions"] }];
  }

  models(): readonly ModelInfo[] {
    return this.#models;
  }

  generate(request: GenerationRequest): AsyncIterable<readonly GenerationEvent[]> {
    return cancellable((signal) => this.#run(request, signal));
  }

  async *#run(request: GenerationRequest, signal: AbortSignal): AsyncGenerator<readonly GenerationEvent[]> {
    if (this.#lifecycle.state === "closed") {
      yield [shutdown];
      return;
    }
    const stop = new AbortController();
    this.#lifecycle.begin(stop);
    try {
      for await (const batch of this.#runner.run(request, AbortSignal.any([signal, stop.signal]))) {
        // A run does not know why it was aborted.
        yield stop.signal.aborted && !signal.aborted
          ? [...batch.filter((event) => event.type !== "end"), shutdown]
          : batch;
      }
    } finally {
      this.#lifecycle.end(stop);
    }
  }

  health(): EngineHealth {
    return {
      ...this.#lifecycle.health(),
      ...this.#runner.load(),
      counters: { running: this.#lifecycle.open.size },
    };
  }

  close(graceMs: number): Promise<void> {
    return this.#lifecycle.close(graceMs, {
      stop: (running) => running.abort(),
      release: () => this.#runner.close(),
    });
  }
}

const shutdown: EndEvent = { type: "end", end: shuttingDown };

export interface LocalProgramOptions {
  /** The program. It runs in this thread, so it must not compute for long without an `await`. */
  readonly program: Program | LanguageModel;
  /** The model's name for clients; default "program". */
  readonly name?: string;
  /** The format of tool calls and reasoning in the program's text; default: none. */
  readonly format?: Format;
  /** Clients see the message of any exception; default: only of a `RequestError`. */
  readonly showErrors?: boolean;
  /** Receives warnings about the program. */
  readonly log?: LogListener;
}

/** Opens a program in memory, without Node built-ins. Throws `ProgramLoadError` if the value is not a program. */
export function openLocalProgram({
  program,
  name = "program",
  format = plainText,
  showErrors = false,
  log,
}: LocalProgramOptions): Engine {
  const loaded = classify(program);
  if (loaded?.kind !== "program") {
    throw new ProgramLoadError("A program must be a function or an AI SDK language model.");
  }
  const warn = (line: string): void => log?.(line, "warn");
  const run = { format, showErrors, warn, newCallId: () => toolCallId(random) };
  return new ProgramEngine(
    {
      models: undefined,
      run: (request, signal) => runProgram(loaded.program, request, signal, run),
      load: () => ({}),
      close: async () => {},
    },
    name,
  );
}
