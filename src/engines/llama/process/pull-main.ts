import { ignoreTerminalSignals } from "../../lifecycle/terminal-signals.ts";
import { ModelOpenError } from "../model-open-error.ts";
import type { FromPull } from "../pull-model.ts";
import { importLibrary, downloadFailed, modelFile, type ModelSource } from "./model-file.ts";

/* The entry point of the process of one download, which `pullModel` starts. It lives as long as the channel to its parent. */
if (process.send === undefined) throw new Error("This module is started by Truewire itself, as a process of its own.");

/** Interval of progress messages. */
const progressIntervalMs = 200;

ignoreTerminalSignals();
// What was received is on disk, and the next download continues there.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.on("message", (source: ModelSource) => {
  // Errors that the library does not report to its caller, such as a full disk.
  process.on("uncaughtException", (error) => fail(downloadFailed(source, error)));
  void pull(source);
});

function send(message: FromPull): void {
  process.send?.(message);
}

function fail({ reason, message }: ModelOpenError): void {
  send({ type: "failed", reason, message });
}

async function pull(source: ModelSource): Promise<void> {
  let sentAt = -Infinity;
  let sentBytes = -1;
  try {
    const path = await modelFile(await importLibrary(), source, (downloaded) => {
      const now = performance.now();
      const isAll = downloaded.bytes === downloaded.totalBytes;
      if (downloaded.bytes === sentBytes || (now - sentAt < progressIntervalMs && !isAll)) return;
      sentAt = now;
      sentBytes = downloaded.bytes;
      send({ type: "progress", downloaded });
    });
    send({ type: "pulled", path });
  } catch (error) {
    fail(error instanceof ModelOpenError ? error : downloadFailed(source, error));
  }
}
