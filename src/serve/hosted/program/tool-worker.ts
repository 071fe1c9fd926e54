/** The worker thread of a user's tool: imports its module, and runs one call at a time. Started by `tool-threads.ts`. */
import { parentPort, workerData } from "node:worker_threads";
import { importModule } from "../../../engines/program/import-module.ts";
import type { FromToolWorker, ToToolWorker } from "./tool-threads.ts";
import type { HostedProgram } from "../../../wire/core/hosted-program.ts";

const { path } = workerData as { readonly path: string };
let abort = new AbortController();

try {
  const { default: program, description, parameters } = await importModule(path);
  if (typeof program !== "function") throw new Error("its default export is not a function");
  parentPort?.on("message", (message: ToToolWorker) => {
    if (message.type === "abort") abort.abort();
    else void run(program as HostedProgram, message);
  });
  send({ type: "ready", description, parameters });
} catch (error) {
  send({
    type: "failed",
    message: `${path} could not be loaded: ${error instanceof Error ? error.message : String(error)}`,
  });
}

async function run(program: HostedProgram, { input }: ToToolWorker & { type: "run" }): Promise<void> {
  abort = new AbortController();
  try {
    send({ type: "done", value: await program({ ...input, signal: abort.signal }) });
  } catch (error) {
    send({ type: "thrown", message: error instanceof Error ? error.message : String(error) });
  }
}

function send(message: FromToolWorker): void {
  try {
    parentPort?.postMessage(message);
  } catch (error) {
    // A value with functions cannot be sent between threads.
    parentPort?.postMessage({ type: "thrown", message: (error as Error).message } satisfies FromToolWorker);
  }
}
