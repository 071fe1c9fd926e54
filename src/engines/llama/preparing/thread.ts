/** Entry point of the preparing thread, which `process/preparing-thread.ts` starts. */
import { parentPort, workerData } from "node:worker_threads";
import type { GenerationFailure } from "../../../wire/core/events.ts";
import { FailureError, loggedError } from "../../../wire/core/failure.ts";
import type { ModelRequest } from "../protocol.ts";
import { Preparer } from "./preparer.ts";
import type { FromThread, ThreadAnswer, ThreadJob, ThreadSetup } from "./thread-messages.ts";

const preparer = new Preparer(workerData as ThreadSetup, post);

parentPort?.on("message", (job: ThreadJob) => void answer(job));

async function answer(job: ThreadJob): Promise<void> {
  try {
    post(job.type === "prepare" ? prepare(job.asked) : await check(job));
  } catch (error) {
    // Also if a message is nested too deeply to be posted.
    post({ type: "refused", failure: job.type === "prepare" ? failureOf(error) : checkFailure(error) });
  }
}

function prepare(asked: readonly string[]): ThreadAnswer {
  return { type: "prepared", preparation: preparer.prepare(JSON.parse(asked.join("")) as ModelRequest, new Date()) };
}

/** Loads the validator on first use: few requests need it. */
async function check({ json, schema }: ThreadJob & { type: "check" }): Promise<ThreadAnswer> {
  const { checkJson } = await import("../../../text/formats/check-json.ts");
  return { type: "checked", errors: checkJson(json, schema) };
}

function post(message: FromThread): void {
  parentPort?.postMessage(message);
}

/** Converts an error to a failure. A cause may be any value, so only its text is sent. */
function failureOf(error: unknown): GenerationFailure {
  if (!(error instanceof FailureError)) return { ...unprepared, cause: loggedError(error) };
  const { cause, ...failure } = error.failure;
  return cause === undefined ? failure : { ...failure, cause: loggedError(cause) };
}

const unprepared: GenerationFailure = {
  message: "The request could not be prepared for the model.",
  status: 500,
  kind: "internal",
  param: null,
  code: null,
};

/** For the log only. */
function checkFailure(error: unknown): GenerationFailure {
  return { ...unprepared, message: error instanceof Error ? error.message : String(error) };
}
