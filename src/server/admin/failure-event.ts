import type { GenerationFailure } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import { internalError } from "../../apis/failures.ts";
import type { Mask } from "../mask.ts";
import type { Reply } from "../reply.ts";

/** What an admin task's stream says last when the task fails after its 200: `error`, as the API words it. */
export function failureEvent(reply: Reply, mask: Mask, error: unknown): object {
  const { failure } = error instanceof FailureError ? error : internalError(error);
  const { cause, ...told } = failure;
  const shown: GenerationFailure = mask.value(told);
  // The status was sent as 200: this makes the log's line one of a failure.
  reply.record.end = { kind: "rejected", failure: shown };
  reply.record.cause = cause;
  const { body } = reply.voice.writeFailure(shown, reply.profile, reply.requestId);
  return { type: "error", ...(JSON.parse(body) as object) };
}
