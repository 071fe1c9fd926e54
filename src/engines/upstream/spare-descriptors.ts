import { closeSync, openSync } from "node:fs";
import type { buildConnector } from "undici";

/** Enough for a burst of clients to be accepted and told that there are too many of them. */
const spared = 8;

/**
 * Connects as `connector` does, but not with the process's last file descriptors. With those gone, clients could not even be refused:
 * their connections would be cut without a word.
 */
export function sparingDescriptors(
  connector: buildConnector.connector,
  limit: number | undefined,
): buildConnector.connector {
  if (limit === undefined) return connector;
  return (options, callback) => {
    const error = lowestFreeDescriptor() < limit - spared ? undefined : outOfFiles();
    // Undici does not expect to hear of it before it is done asking.
    if (error) queueMicrotask(() => callback(error, null));
    else connector(options, callback);
  };
}

/** Descriptors are numbered from the lowest free one, so it tells how many are in use at least. Costs 5 µs, a connection hundreds. */
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
