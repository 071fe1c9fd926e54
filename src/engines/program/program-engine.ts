import { cancellable } from "../../core/cancellable.ts";
import type { Engine, EngineHealth, ModelInfo } from "../../core/engine.ts";
import type { EndEvent, GenerationEvent } from "../../core/events.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { EngineLifecycle, shuttingDown } from "../lifecycle/engine-lifecycle.ts";

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
