import { randomBytes } from "node:crypto";
import { ModelOpenError } from "../model-open-error.ts";
import type { OpenProgress, WriteLine } from "../options.ts";
import type { FromModel, GenerateMessage, OpenMessage, ToModel } from "../protocol.ts";
import { newCallId } from "./call-id.ts";
import { openModel } from "./open-model.ts";
import { sameFormat } from "./same-format.ts";
import type { Scheduler } from "./scheduler.ts";

/**
 * The model's process: started by `ModelProcess` with a channel to its parent. The first message says which model to open. It lives as
 * long as the channel: when its parent is gone, so is it.
 */
if (process.send === undefined) throw new Error("This module is started by Truewire itself, as a process of its own.");

// A copied state is a file for a moment, and holds what was said: it is for this user's eyes.
process.umask(0o077);
// The terminal sends its signals to all; when to stop is for the parent to say.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
// Nothing is to be saved, and an orderly exit would wait for the library's threads.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));

let scheduler: Scheduler | undefined;

process.on("message", (message: ToModel) => {
  if (message.type === "open") void open(message);
  else if (message.type === "generate") generate(message);
  else if (message.type === "cancel") scheduler?.cancel(message.id);
  else scheduler?.taken(message.id, message.tokens);
});

function generate(message: GenerateMessage): void {
  const { reading } = message;
  scheduler?.add({ ...message, reading: { ...reading, format: sameFormat(reading.format) } });
}

function tell(message: FromModel): void {
  process.send?.(message);
}

async function open(message: OpenMessage): Promise<void> {
  let told = { phase: "", fraction: 0 };
  const onProgress = (progress: OpenProgress): void => {
    if (progress.phase === told.phase && progress.fraction - told.fraction < 0.01 && progress.fraction < 1) return;
    told = progress;
    tell({ type: "progress", progress });
  };
  try {
    const log: WriteLine = (line, level) => tell({ type: "log", line, level });
    const { facts, ...opened } = await openModel(message, { onProgress, log });
    // Only now: they import the library, and without one `openModel` has just said which command installs it.
    const { Scheduler } = await import("./scheduler.ts");
    const { constraintOpener } = await import("./open-constraint.ts");
    scheduler = new Scheduler({
      around: {
        model: opened.model,
        vocabulary: opened.vocabulary,
        contextSize: facts.contextSize,
        newCallId,
        openConstraint: constraintOpener(opened.model, opened.vocabulary, log),
        log,
      },
      sequences: opened.sequences,
      gate: opened.gate,
      copiesStates: opened.copiesStates,
      queueLimit: message.queueLimit,
      batchSize: message.batchSize,
      report: tell,
      chance: () => randomBytes(4).readUInt32LE() / 2 ** 32,
    });
    tell({ type: "ready", facts });
    await scheduler.run();
  } catch (error) {
    const failed = error instanceof ModelOpenError ? error : new ModelOpenError("load-failed", String(error), error);
    tell({ type: "failed", reason: failed.reason, message: failed.message });
  }
}
