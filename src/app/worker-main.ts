/** What a worker runs: a server that shares its port, and what its primary process has, with the other workers. */
import cluster from "node:cluster";
import { socketPeer, openWorkerSocket } from "../workers/socket-peer.ts";
import { openServer } from "./create-server.ts";
import type { TruewireServer } from "./create-server.ts";
import { outliveReaders, reportRejections, tuneV8 } from "./processes.ts";
import { workerTopics } from "./worker-messages.ts";
import type { WorkerConfig, WorkerFailed, WorkerReady, WorkerStart } from "./worker-messages.ts";
import { openWorkerSide } from "./worker-side.ts";

/** Time in which open answers can send their end when the process must exit, in milliseconds. */
const lastMs = 800;

// Signals for a group of processes (Ctrl-C, systemd) reach workers, too; the primary process decides what they do.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
tuneV8();
reportRejections();
outliveReaders();
// When the primary process ends, node:cluster would end this one immediately and cut its answers.
if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;

const primary = socketPeer(openWorkerSocket());
const side = openWorkerSide(primary);
let server: TruewireServer | undefined;

/** Ends open answers as errors, and the process. */
function leave(): void {
  setTimeout(() => process.exit(1), lastMs);
  void (server?.close(0) ?? Promise.resolve()).finally(() => process.exit(1));
}

process.on("uncaughtException", (error) => {
  console.error(`truewire: Uncaught exception in a worker: ${error.stack ?? error.message}`);
  leave();
});
void primary.closed.then(leave);
primary.onNotification("worker.stop", (graceMs) => {
  if (!server) process.exit(0);
  void server.close(graceMs as number).finally(() => process.exit(0));
});
primary.onRequest(workerTopics.alive, () => null);
primary.onRequest(workerTopics.reload, async (body) => {
  const next = body as WorkerConfig;
  side.files = next.files;
  await server?.reload(next.config);
  return server?.models();
});

const { number, count, config, files, turnKey } = (await primary.request(workerTopics.start, null)) as WorkerStart;
side.number = number;
side.count = count;
side.files = files;
side.turnKey = turnKey;
try {
  server = await openServer(config, {}, side);
  primary.notify(workerTopics.ready, { url: server.url, models: server.models() } satisfies WorkerReady);
} catch (error) {
  const { message, code, syscall } = error as NodeJS.ErrnoException;
  primary.notify(workerTopics.failed, { message, code, syscall } satisfies WorkerFailed);
}
