import { ModelOpenError } from "../model-open-error.ts";
import type { FromPull } from "../pull-model.ts";
import { importLibrary, downloadFailed, modelFile, type ModelSource } from "./model-file.ts";

/** The process of one download: started by `pullModel`. It lives as long as the channel to its parent. */
if (process.send === undefined) throw new Error("This module is started by Truewire itself, as a process of its own.");

/** How often it tells how far it is. */
const tellEveryMs = 200;

process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
// What has arrived is on disk already; the next download goes on from there.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
process.on("message", (source: ModelSource) => {
  // What the library throws past its caller, such as a full disk.
  process.on("uncaughtException", (error) => fail(downloadFailed(source, error)));
  void pull(source);
});

function tell(message: FromPull): void {
  process.send?.(message);
}

function fail({ reason, message }: ModelOpenError): void {
  tell({ type: "failed", reason, message });
}

async function pull(source: ModelSource): Promise<void> {
  let toldAt = -Infinity;
  let toldBytes = -1;
  try {
    const path = await modelFile(await importLibrary(), source, (downloaded) => {
      const now = performance.now();
      const isAll = downloaded.bytes === downloaded.totalBytes;
      if (downloaded.bytes === toldBytes || (now - toldAt < tellEveryMs && !isAll)) return;
      toldAt = now;
      toldBytes = downloaded.bytes;
      tell({ type: "progress", downloaded });
    });
    tell({ type: "pulled", path });
  } catch (error) {
    fail(error instanceof ModelOpenError ? error : downloadFailed(source, error));
  }
}
