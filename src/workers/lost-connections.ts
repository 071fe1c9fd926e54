import type { ChildProcess } from "node:child_process";

/** A connection that was accepted, as node:cluster hands it to a worker. */
interface Handle {
  close(...more: unknown[]): void;
}

/**
 * node:cluster keeps a connection open until the worker that it was handed to has taken it, and forgets it where that worker ends before:
 * its client would wait for ever. This closes such connections. Source: lib/internal/cluster/round_robin_handle.js of Node 20, `handoff`.
 */
export function closeLostConnections(worker: ChildProcess): void {
  const handed = new Set<Handle>();
  const send = worker.send.bind(worker) as (...sent: unknown[]) => boolean;
  worker.send = (message: unknown, handle?: unknown, ...more: unknown[]): boolean => {
    if (isHandle(handle) && !handed.has(handle)) {
      handed.add(handle);
      // A worker has taken it.
      const { close } = handle;
      handle.close = (...args) => {
        handed.delete(handle);
        handle.close = close;
        close.apply(handle, args);
      };
    }
    return send(message, handle, ...more);
  };
  worker.once("exit", () => {
    for (const handle of handed) handle.close();
  });
}

function isHandle(value: unknown): value is Handle {
  return typeof value === "object" && value !== null && "close" in value && typeof value.close === "function";
}
