/** What a worker runs: a server that shares its port with the other workers, and nothing else. */
import cluster from "node:cluster";
import { ignoreTerminalSignals } from "../../engines/lifecycle/terminal-signals.ts";
import { openServer } from "./create-server.ts";
import type { TruewireServer } from "./create-server.ts";
import { outliveReaders, reportRejections } from "./processes.ts";
import type { FromWorker, ToWorker } from "./worker-messages.ts";

/** Time in which open answers can send their end when the process must exit, in milliseconds. */
const lastMs = 800;

// Those of systemd reach workers, too; the parent process decides what they do.
ignoreTerminalSignals();
reportRejections();
outliveReaders();
// When the parent process ends, node:cluster would end this one immediately and cut its answers.
if (cluster.worker) cluster.worker.exitedAfterDisconnect = true;

let server: TruewireServer | undefined;
/** The configurations are served one after another. */
let serving = Promise.resolve();
/** Called with the metrics of all workers; present while they are collected. */
let onAllMetrics: ((text: string) => void) | undefined;
let allMetrics: Promise<string> | undefined;
/** Returns the metrics of this worker. */
let ownMetrics: () => Promise<string> = () => Promise.resolve("");

function send(message: FromWorker): void {
  // If the parent process has ended, `disconnect` follows.
  if (process.connected) process.send?.(message, undefined, undefined, () => {});
}

/** Ends open answers as errors, and the process. */
function leave(): void {
  setTimeout(() => process.exit(1), lastMs);
  void (server?.close(0) ?? Promise.resolve()).finally(() => process.exit(1));
}

async function serve({ number, config, turnKey }: Extract<ToWorker, { kind: "serve" }>): Promise<void> {
  try {
    if (server) await server.reload(config);
    else
      server = await openServer(
        config,
        { readConfig: refuseReload },
        {
          number,
          turnKey: Buffer.from(turnKey, "base64"),
          shareMetrics(own) {
            ownMetrics = own;
            return () =>
              (allMetrics ??= new Promise<string>((resolve) => {
                onAllMetrics = resolve;
                send({ kind: "all-metrics" });
              }).finally(() => (allMetrics = undefined)));
          },
        },
      );
    send({ kind: "ready", url: server.url, models: server.models() });
  } catch (error) {
    const { message, code, syscall } = error as NodeJS.ErrnoException;
    send({ kind: "failed", message, code, syscall });
    if (!server) process.disconnect();
  }
}

/** The admin API of one worker cannot reload the others. */
function refuseReload(): Promise<never> {
  throw new Error(`This is one of several workers. Send SIGHUP to their parent process ${process.ppid} to reload all.`);
}

process.on("uncaughtException", (error) => {
  console.error(`truewire: Uncaught exception in a worker: ${error.stack ?? error.message}`);
  leave();
});
process.once("disconnect", leave);
process.on("message", (message: ToWorker) => {
  switch (message.kind) {
    case "serve":
      serving = serving.then(() => serve(message));
      return;
    case "stop":
      if (!server) process.exit(0);
      void server.close(message.graceMs).finally(() => process.exit(0));
      return;
    case "ping":
      return send({ kind: "alive" });
    case "metrics":
      void ownMetrics().then((text) => send({ kind: "metrics", text }));
      return;
    case "all-metrics":
      return onAllMetrics?.(message.text);
  }
});
send({ kind: "started" });
