import { createWriteStream } from "node:fs";
import { constants, open, stat } from "node:fs/promises";
import { once } from "node:events";
import type { Log, StreamLog } from "./log.ts";

/** A disk, or the reader of a pipe, that takes nothing for so long holds nobody's answer any longer. In milliseconds. */
const patienceMs = 5000;

/**
 * Appends every outgoing event to a file, one line an event: time, request id, and the event as it was sent. Nobody but the server's
 * user may read a file that is made for it. Rejects with an Error where it cannot be opened, and for a pipe that nobody reads.
 * When it can be written no more, `log` says so, once, and the answers go on.
 */
export async function openStreamLog(file: string, log: Log): Promise<StreamLog> {
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
      if (stream.write(lines)) return undefined;
      return (draining ??= within(patienceMs, once(stream, "drain")).then((drained) => {
        draining = undefined;
        if (!drained) fail(`nothing was taken for ${patienceMs / 1000} seconds`);
      }));
    },
    async close() {
      if (!failed) await within(patienceMs, new Promise((resolve) => stream.end(resolve)));
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

/** To open a pipe waits for a reader, and with it the whole server would. */
async function requireReader(file: string): Promise<void> {
  const pipe = await open(file, constants.O_WRONLY | constants.O_NONBLOCK).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === "ENXIO" ? new Error(`${file} is a pipe that nobody reads.`, { cause }) : cause;
  });
  await pipe.close();
}

/** Whether the promise came to an end in time; one that breaks has. */
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
