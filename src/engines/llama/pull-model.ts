import { fork } from "node:child_process";
import type { LogListener } from "../../wire/core/generation-observer.ts";
import { ModelOpenError } from "./model-open-error.ts";
import type { ModelOpenReason } from "./model-open-error.ts";
import type { Downloaded, ModelSource } from "./process/model-file.ts";

/** Messages of a download's process. */
export type FromPull =
  | { readonly type: "progress"; readonly downloaded: Downloaded }
  | { readonly type: "pulled"; readonly path: string }
  | { readonly type: "failed"; readonly reason: ModelOpenReason; readonly message: string };

export interface PullOptions {
  readonly onProgress?: (downloaded: Downloaded) => void;
  readonly log?: LogListener;
  /** Aborts the download. The next one resumes it. */
  readonly signal?: AbortSignal;
  /** The download fails if no bytes arrive for this time; broken connections are retried. Default: a minute. */
  readonly stalledMs?: number;
}

/**
 * Returns the path of a model's file. An `hf:` name is downloaded, in a process of its own, unless it was before; an interrupted download is
 * resumed. Rejects with `ModelOpenError`.
 */
export function pullModel(source: ModelSource, options: PullOptions): Promise<string> {
  const { onProgress, log, signal, stalledMs = 60_000 } = options;
  // The compiled module, as for `ModelProcess`.
  const child = fork(new URL("./process/pull-main.js", import.meta.url), {
    execArgv: [],
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    for (const line of text.split("\n")) if (line.trim() !== "") log?.(line, "info");
  });
  const stop = (): void => {
    child.kill("SIGKILL");
  };
  process.once("exit", stop);
  signal?.addEventListener("abort", stop, { once: true });
  let stalled = false;
  const giveUp = (): void => {
    stalled = true;
    stop();
  };
  let timer = setTimeout(giveUp, stalledMs);
  let bytes = -1;
  return new Promise<string>((resolve, reject) => {
    const fail = (what: string, reason: ModelOpenReason = "download-failed", cause?: unknown): void =>
      reject(new ModelOpenError(reason, what, cause));
    child.on("message", (message: FromPull) => {
      switch (message.type) {
        case "progress":
          // A broken connection loses some bytes, so only a new maximum counts as progress.
          if (message.downloaded.bytes > bytes) {
            bytes = message.downloaded.bytes;
            clearTimeout(timer);
            timer = setTimeout(giveUp, stalledMs);
          }
          onProgress?.(message.downloaded);
          break;
        case "pulled":
          resolve(message.path);
          stop();
          break;
        case "failed":
          fail(message.message, message.reason);
          stop();
      }
    });
    child.once("error", (cause) => fail(`The download of ${source.model} could not be started.`, undefined, cause));
    child.once("exit", (code, how) => {
      const why = stalled
        ? `nothing arrived for ${stalledMs / 1000} seconds; what is here stays, and the next download resumes it`
        : signal?.aborted === true
          ? "it was stopped; what is here stays, and the next download resumes it"
          : `its process ended (${how ?? code})`;
      fail(`${source.model} could not be downloaded: ${why}.`);
    });
    if (signal?.aborted === true) stop();
    else child.send(source, () => {});
  }).finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    process.removeListener("exit", stop);
  });
}
