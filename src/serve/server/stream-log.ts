import { createWriteStream } from "node:fs";
import { constants, open, stat } from "node:fs/promises";
import { once } from "node:events";
import type { Log, StreamLog } from "./log.ts";
import type { Mask } from "./mask.ts";

/** How long answers wait for a disk, or the reader of a pipe, that takes nothing. In milliseconds. */
const timeoutMs = 5000;

/**
 * Opens a file to which every streamed event is appended as a line: time, request id, and the event as it was sent, without keys. A new
 * file is readable only by the user of the server. `mask` is called for each text, because the configuration may be reloaded. Rejects if the file cannot be opened, and for a pipe without a reader. If a write fails, the stream log
 * ends with one line in `log`, and the answers continue.
 */
export async function openStreamLog(file: string, log: Log, mask: () => Mask): Promise<StreamLog> {
  if (await isPipe(file)) await requireReader(file);
  const stream = createWriteStream(file, { flags: "a", mode: 0o600 });
  await once(stream, "open");
  let failed = false;
  const fail = (why: string): void => {
    if (failed) return;
    failed = true;
    log.error({ file, error: why }, "the stream log cannot be written any more; it has ended");
    stream.destroy();
  };
  stream.on("error", (error) => fail(error.message));
  let draining: Promise<void> | undefined;
  return {
    write(requestId, sse) {
      if (failed) return undefined;
      const time = new Date().toISOString();
      let lines = "";
      for (const event of sse.split("\n\n")) {
        if (event !== "") lines += `${time} ${requestId} ${event.replaceAll("\n", "\\n")}\n`;
      }
      if (stream.write(mask().text(lines))) return undefined;
      return (draining ??= within(timeoutMs, once(stream, "drain")).then((drained) => {
        draining = undefined;
        if (!drained) fail(`nothing was taken for ${timeoutMs / 1000} seconds`);
      }));
    },
    async close() {
      if (!failed) await within(timeoutMs, new Promise((resolve) => stream.end(resolve)));
      stream.destroy();
    },
  };
}

async function isPipe(file: string): Promise<boolean> {
  return stat(file).then(
    (found) => found.isFIFO(),
    () => false,
  );
}

/** Opening a pipe blocks until it has a reader, so this is checked first. */
async function requireReader(file: string): Promise<void> {
  const pipe = await open(file, constants.O_WRONLY | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === "ENXIO" ? new Error(`${file} is a pipe without a reader.`, { cause }) : cause;
  });
  await pipe.close();
}

/** Whether the promise settles within `ms` milliseconds. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const settled = promise.then(
    () => true,
    () => true,
  );
  const inTime = await Promise.race([settled, late]);
  clearTimeout(timer);
  return inTime;
}
