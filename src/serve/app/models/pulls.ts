import type { Downloaded, ModelSource } from "../../../engines/llama/process/model-file.ts";
import { pullModel } from "../../../engines/llama/pull-model.ts";
import type { PullState } from "../../../judge/inspect/model-states.ts";
import type { LogListener } from "../../../wire/core/generation-observer.ts";

interface Pull {
  readonly model: string;
  /** How much has arrived. */
  latest: Downloaded;
  readonly listeners: Set<(downloaded: Downloaded) => void>;
  readonly controller: AbortController;
  readonly path: Promise<string>;
}

/** Downloads in progress. Requests for the same model share one, which continues as long as one of them waits. */
export class Pulls {
  readonly #running = new Map<string, Pull>();
  readonly #log: LogListener;

  constructor(log: LogListener) {
    this.#log = log;
  }

  get running(): readonly PullState[] {
    return [...this.#running.values()].map(({ model, latest: { bytes, totalBytes } }) => ({
      model,
      bytes,
      total_bytes: totalBytes,
    }));
  }

  /** Resolves with the model's file. Rejects with `ModelOpenError`. */
  async pull(source: ModelSource, onProgress: (downloaded: Downloaded) => void, signal: AbortSignal): Promise<string> {
    const key = `${source.model} ${source.modelsFolder ?? ""}`;
    const pull = this.#running.get(key) ?? this.#begin(key, source);
    pull.listeners.add(onProgress);
    const leave = (): void => {
      pull.listeners.delete(onProgress);
      if (pull.listeners.size > 0) return;
      this.#forget(key, pull);
      pull.controller.abort();
    };
    signal.addEventListener("abort", leave, { once: true });
    if (signal.aborted) leave();
    try {
      return await pull.path;
    } finally {
      signal.removeEventListener("abort", leave);
      pull.listeners.delete(onProgress);
    }
  }

  #begin(key: string, source: ModelSource): Pull {
    const listeners = new Set<(downloaded: Downloaded) => void>();
    const controller = new AbortController();
    const path = pullModel(source, {
      onProgress: (downloaded) => {
        pull.latest = downloaded;
        for (const listener of listeners) listener(downloaded);
      },
      log: this.#log,
      signal: controller.signal,
    });
    const pull: Pull = { model: source.model, latest: { bytes: 0, totalBytes: 0 }, listeners, controller, path };
    this.#running.set(key, pull);
    const over = (): void => this.#forget(key, pull);
    path.then(over, over);
    return pull;
  }

  #forget(key: string, pull: Pull): void {
    if (this.#running.get(key) === pull) this.#running.delete(key);
  }
}
