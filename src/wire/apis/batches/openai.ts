import { isObject } from "../../core/json.ts";
import { openaiErrorFormat } from "../api-error-format.ts";
import { notFound } from "../failures.ts";
import { openaiJson, openaiPage, shownId } from "../files/write.ts";
import { inWireOrder } from "../members.ts";
import type { BatchBeginning, BatchForm, BatchLine, BatchState, LineAnswer, Unanswered } from "./form.ts";
import { openaiBatch } from "./schema.ts";
import type { BatchError, OpenaiBatch } from "./schema.ts";

/** The maximum length of a `custom_id`, in characters. */
const maxCustomId = 512;

/** OpenAI's batches. Source of the codes of lines: https://platform.openai.com/docs/guides/batch, and errors quoted in public issues. */
export const openaiBatches: BatchForm = {
  api: "openai",
  errorFormat: openaiErrorFormat,
  maxLines: 50_000,
  readLine,
  answered: (customId, { status, requestId, body }: LineAnswer, id) =>
    `{"id":"${id}","custom_id":${JSON.stringify(customId)},"response":{"status_code":${status},` +
    `"request_id":${JSON.stringify(requestId)},"body":${body}},"error":null}`,
  unanswered: (customId, why, id) =>
    JSON.stringify({ id, custom_id: customId, response: null, error: unansweredErrors[why] }),
  one: (batch, profile) => openaiJson(openaiBatch, batchObject(batch), profile),
  page: (batches, hasMore, profile) =>
    openaiPage(
      batches.map((batch) => inWireOrder(openaiBatch, batchObject(batch))),
      hasMore,
      profile,
    ),
  missing: (id) => notFound(`No batch found with id '${shownId(id)}'.`, null, null),
};

const unansweredErrors: Readonly<Record<Unanswered, { readonly code: string; readonly message: string }>> = {
  expired: {
    code: "batch_expired",
    message: "This request could not be executed before the completion window expired.",
  },
  cancelled: { code: "batch_cancelled", message: "This request was not executed because the batch was cancelled." },
};

function readLine(value: unknown, { endpoint }: BatchBeginning): BatchLine | BatchError {
  if (!isObject(value)) return invalidLine();
  const { custom_id: customId, method, url, body } = value;
  for (const name of ["custom_id", "method", "url", "body"])
    if (value[name] === undefined)
      return { code: "missing_required_parameter", message: `Missing required parameter: '${name}'.`, param: name };
  if (typeof customId !== "string" || customId === "" || customId.length > maxCustomId)
    return {
      code: "invalid_custom_id",
      message: `Invalid 'custom_id': expected a string of 1 to ${maxCustomId} characters.`,
      param: "custom_id",
    };
  if (method !== "POST")
    return { code: "invalid_method", message: "Invalid 'method': expected POST.", param: "method" };
  if (url !== endpoint)
    return {
      code: "url_mismatch",
      message: `The URL of this request does not match the endpoint of the batch, ${endpoint}.`,
      param: "url",
    };
  if (!isObject(body))
    return { code: "invalid_type", message: "Invalid type for 'body': expected an object.", param: "body" };
  return { customId, body };
}

/** OpenAI's words. */
export function invalidLine(): BatchError {
  return { code: "invalid_json_line", message: "This line is not parseable as valid JSON.", param: null };
}

function batchObject(batch: BatchState): OpenaiBatch {
  const { counts, usage, ended, startedAt, cancelledAt, finalizingAt, outputId, errorId } = batch;
  const endedAs = (status: string): number | null => (ended?.status === status ? ended.at : null);
  const failed = counts.failed + counts.cancelled + counts.expired;
  const hasFiles = ended && ended.status !== "failed";
  return {
    id: batch.id,
    object: "batch",
    endpoint: batch.endpoint,
    model: batch.model ?? null,
    errors: ended?.errors ? { object: "list", data: [...ended.errors] } : null,
    input_file_id: batch.inputId,
    completion_window: "24h",
    status: statusOf(batch),
    output_file_id: hasFiles && counts.completed > 0 ? outputId : null,
    error_file_id: hasFiles && failed > 0 ? errorId : null,
    created_at: batch.created,
    in_progress_at: startedAt ?? null,
    expires_at: batch.expires,
    finalizing_at: finalizingAt ?? null,
    completed_at: endedAs("completed"),
    failed_at: endedAs("failed"),
    expired_at: endedAs("expired"),
    cancelling_at: cancelledAt ?? null,
    cancelled_at: endedAs("cancelled"),
    request_counts: { total: counts.total, completed: counts.completed, failed },
    usage: {
      input_tokens: usage.input,
      input_tokens_details: { cached_tokens: usage.cached },
      output_tokens: usage.output,
      output_tokens_details: { reasoning_tokens: usage.reasoning },
      total_tokens: usage.input + usage.output,
    },
    metadata: (batch.metadata as Record<string, string> | undefined) ?? null,
  };
}

function statusOf({ ended, startedAt, cancelledAt, finalizingAt }: BatchState): OpenaiBatch["status"] {
  if (ended) return ended.status;
  if (cancelledAt !== undefined) return "cancelling";
  if (finalizingAt !== undefined) return "finalizing";
  return startedAt === undefined ? "validating" : "in_progress";
}
