import { createWriteStream } from "node:fs";
import { once } from "node:events";
import type { StreamLog } from "./log.ts";

/**
 * Appends every outgoing event to a file, one line an event: time, request id, and the event as it was sent. `secrets` (keys) never
 * reach the file, even if a source repeats one in its text.
 */
export async function openStreamLog(file: string, secrets: () => readonly string[]): Promise<StreamLog> {
  const stream = createWriteStream(file, { flags: "a" });
  await once(stream, "open");
  // A full disk must not stop the answers: it is logged once, and the stream log ends.
  let failed = false;
  stream.on("error", () => {
    failed = true;
  });
  let draining: Promise<void> | undefined;
  return {
    write(requestId, sse) {
      if (failed) return undefined;
      const time = new Date().toISOString();
      let lines = "";
      for (const event of sse.split("\n\n")) {
        if (event !== "") lines += `${time} ${requestId} ${event.replaceAll("\n", "\\n")}\n`;
      }
      for (const secret of secrets()) lines = lines.replaceAll(secret, "[key]");
      if (stream.write(lines)) return undefined;
      draining ??= once(stream, "drain").then(
        () => (draining = undefined),
        () => (draining = undefined),
      );
      return draining;
    },
    close: () => new Promise((resolve) => stream.end(() => resolve())),
  };
}
