/** The worker thread of a user's tool: imports its module, and runs one call at a time. Started by `tool-threads.ts`. */
import { parentPort, workerData } from "node:worker_threads";
import { importModule } from "../../../engines/program/import-module.ts";
import type { FromToolWorker, ToolWorkerSetup, ToToolWorker } from "./tool-threads.ts";
import { loggedError } from "../../../wire/core/failure.ts";
import type { Hook } from "../../../wire/core/hook.ts";
import { isObject } from "../../../wire/core/json.ts";
import type { HostedProgram } from "../../../wire/core/hosted-program.ts";

const { path, isHook } = workerData as ToolWorkerSetup;
/** The most characters that a hook may return, as JSON. */
const maxResult = 64 * 1024 ** 2;
let abort = new AbortController();
let members: readonly (keyof Hook)[] | undefined;

try {
  const { default: program, description, parameters } = await importModule(path);
  if (isHook) members = membersOf(program);
  else if (typeof program !== "function") throw new Error("its default export is not a function");
  parentPort?.on("message", (message: ToToolWorker) => {
    if (message.type === "abort") abort.abort();
    else void run(program as HostedProgram, message);
  });
  send(members ? { type: "ready", members } : { type: "ready", description, parameters });
} catch (error) {
  send({
    type: "failed",
    message: `${path} could not be loaded: ${error instanceof Error ? error.message : String(error)}`,
  });
}

async function run(program: HostedProgram, { input }: ToToolWorker & { type: "run" }): Promise<void> {
  abort = new AbortController();
  try {
    if (!("member" in input)) return send({ type: "done", value: await program({ ...input, signal: abort.signal }) });
    const { [input.member]: own } = program as unknown as Hook;
    const value = JSON.stringify((await own?.(input.input as never, input.context)) ?? null);
    if (value.length > maxResult)
      return send({ type: "thrown", message: "", isLast: true, cause: `it returned ${value.length} characters` });
    send({ type: "done", value });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const {
      name = "",
      status,
      code,
      param,
    } = isObject(error) ? (error as { name?: string; [more: string]: unknown }) : {};
    send({
      type: "thrown",
      message,
      ...(isHook && { details: { name, status, code, param }, cause: loggedError(error) }),
    });
  }
}

function membersOf(hook: unknown): readonly (keyof Hook)[] {
  const known = ["request", "answer"] as const;
  const found = known.filter((member) => isObject(hook) && typeof hook[member] === "function");
  if (found.length > 0) return found;
  throw new Error(
    "its default export is no hook; expected an object with request or answer, such as defineHook({ … })",
  );
}

function send(message: FromToolWorker): void {
  try {
    parentPort?.postMessage(message);
  } catch (error) {
    // A value with functions cannot be sent between threads.
    parentPort?.postMessage({ type: "thrown", message: (error as Error).message } satisfies FromToolWorker);
  }
}
