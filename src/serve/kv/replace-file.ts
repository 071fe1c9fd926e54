import { rename } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";

/** How Windows refuses to replace a file that another program has open, such as a virus scanner. */
const inUse: ReadonlySet<unknown> = new Set(["EPERM", "EACCES", "EBUSY"]);
const maxTries = 10;

/**
 * Renames a file, over another one if there is one. On Windows, it is tried again for up to a second while another program has one of them
 * open. Rejects with the system's error.
 */
export async function replaceFile(
  from: string,
  to: string,
  { platform = process.platform, move = rename, pauseMs = 20 } = {},
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await move(from, to);
    } catch (error) {
      if (platform !== "win32" || tries === maxTries || !inUse.has((error as NodeJS.ErrnoException).code)) throw error;
    }
    await setTimeout(pauseMs * tries);
  }
}
