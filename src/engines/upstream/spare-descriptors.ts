import { closeSync, openSync } from "node:fs";
import type { buildConnector } from "undici";

/** Enough for a burst of clients to be accepted and told that there are too many of them. */
const spared = 8;

/**
 * Connects as `connector` does, but not with the process's last file descriptors. With those gone, clients could not even be refused:
 * their connections would be closed without an answer.
 */
export function sparingDescriptors(
  connector: buildConnector.connector,
  limit: number | undefined,
): buildConnector.connector {
  if (limit === undefined) return connector;
  return (options, callback) => {
    const error = lowestFreeDescriptor() < limit - spared ? undefined : outOfFiles();
    // Undici expects the callback after the call has returned.
    if (error) queueMicrotask(() => callback(error, null));
    else connector(options, callback);
  };
}

/** The system gives out the lowest free number, so a new one shows how many are in use at least. Takes 5 µs, a connection hundreds. */
function lowestFreeDescriptor(): number {
  try {
    const descriptor = openSync("/dev/null", "r");
    closeSync(descriptor);
    return descriptor;
  } catch {
    return Infinity;
  }
}

function outOfFiles(): NodeJS.ErrnoException {
  return Object.assign(new Error("too many open files"), { code: "EMFILE" });
}
