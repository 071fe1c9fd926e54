/** The preparing thread of a model's process: started by `process/preparing-thread.ts`, it does one job after another. */
import { parentPort, workerData } from "node:worker_threads";
import type { GenerationFailure } from "../../../core/events.ts";
import { FailureError } from "../../../core/failure.ts";
import type { AskedOfModel } from "../protocol.ts";
import { Preparer } from "./preparer.ts";
import type { FromThread, ThreadAnswer, ThreadJob, ThreadSetup } from "./thread-messages.ts";

const preparer = new Preparer(workerData as ThreadSetup, tell);

parentPort?.on("message", (job: ThreadJob) => void answer(job));

async function answer(job: ThreadJob): Promise<void> {
  try {
    tell(job.type === "prepare" ? prepare(job.asked) : await check(job));
  } catch (error) {
    // Also for an answer that is nested too deeply to be sent.
    tell({ type: "refused", failure: job.type === "prepare" ? failureOf(error) : uncheckable(error) });
  }
}

function prepare(asked: readonly string[]): ThreadAnswer {
  return { type: "prepared", preparation: preparer.prepare(JSON.parse(asked.join("")) as AskedOfModel, new Date()) };
}

/** The checker is loaded on first use: few requests need it. */
async function check({ json, schema }: ThreadJob & { type: "check" }): Promise<ThreadAnswer> {
  const { checkJson } = await import("./check-json.ts");
  return { type: "checked", errors: checkJson(json, schema) };
}

function tell(message: FromThread): void {
  parentPort?.postMessage(message);
}

/** A cause may be anything; between threads and processes its text travels. */
function failureOf(error: unknown): GenerationFailure {
  if (!(error instanceof FailureError)) return { ...unprepared, cause: textOf(error) };
  const { cause, ...failure } = error.failure;
  return cause === undefined ? failure : { ...failure, cause: textOf(cause) };
}

const unprepared: GenerationFailure = {
  message: "The request could not be prepared for the model.",
  status: 500,
  kind: "internal",
  param: null,
  code: null,
};

/** Nobody sees this but the log. */
function uncheckable(error: unknown): GenerationFailure {
  return { ...unprepared, message: error instanceof Error ? error.message : String(error) };
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
