import { invalidRequest } from "../../core/failure.ts";
import { isObject } from "../../core/json.ts";
import { StepCounter } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import { notFound } from "../failures.ts";
import { isoTime, shownId } from "../files/write.ts";
import { inWireOrder } from "../members.ts";
import { messagesPort } from "../messages/port.ts";
import type { BatchForm, BatchState, LineAnswer } from "./form.ts";
import { messageBatch, messageBatchDeletion } from "./schema.ts";
import type { MessageBatch } from "./schema.ts";

/** Source: the reference of the Message Batches API. */
const maxRequests = 100_000;
const customIdForm = /^[a-zA-Z0-9_-]{1,64}$/;

/** Anthropic's Message Batches. */
export const messageBatches: BatchForm = {
  api: "anthropic",
  errorFormat: messagesPort.errorFormat,
  maxLines: maxRequests,
  // What is stored has been read by `readRequests`.
  readLine: (value) => {
    const { custom_id: customId, params } = value as { readonly custom_id: string; readonly params: object };
    return { customId, body: { ...params } };
  },
  answered: (customId, { status, body }: LineAnswer) =>
    `{"custom_id":${JSON.stringify(customId)},"result":` +
    (status === 200 ? `{"type":"succeeded","message":${body}}}` : `{"type":"errored","error":${body}}}`),
  unanswered: (customId, why) =>
    JSON.stringify({ custom_id: customId, result: { type: why === "expired" ? "expired" : "canceled" } }),
  one: (batch, _profile, baseUrl) => JSON.stringify(batchObject(batch, baseUrl)),
  page: (batches, hasMore, _profile, baseUrl) =>
    JSON.stringify({
      data: batches.map((batch) => batchObject(batch, baseUrl)),
      has_more: hasMore,
      first_id: batches[0]?.id ?? null,
      last_id: batches.at(-1)?.id ?? null,
    }),
  missing: (id) => notFound(`Message Batch not found: ${shownId(id)}`, null, null),
};

/**
 * Reads the body of `POST /v1/messages/batches`. Returns a line of JSON for each request. Their `params` are read when they run, as at
 * Anthropic. Throws `FailureError` 400.
 */
export function* readRequests(body: unknown): Steps<readonly string[]> {
  const requests: unknown = isObject(body) ? body["requests"] : undefined;
  if (!Array.isArray(requests)) throw invalidRequest("requests: Field required", "requests");
  if (requests.length === 0) throw invalidRequest("requests: List should have at least 1 item", "requests");
  if (requests.length > maxRequests)
    throw invalidRequest(`requests: List should have at most ${maxRequests} items`, "requests");
  const counter = new StepCounter();
  const known = new Set<string>();
  const lines: string[] = [];
  for (const [at, request] of (requests as readonly unknown[]).entries()) {
    const { custom_id: id, params } = isObject(request) ? request : {};
    if (typeof id !== "string" || !customIdForm.test(id))
      throw invalidRequest(
        `requests.${at}.custom_id: String should match pattern '${customIdForm.source}'`,
        "requests",
      );
    if (known.has(id))
      throw invalidRequest(`requests.${at}.custom_id: '${id}' is the id of an earlier request`, "requests");
    if (!isObject(params)) throw invalidRequest(`requests.${at}.params: Input should be an object`, "requests");
    known.add(id);
    lines.push(JSON.stringify({ custom_id: id, params }));
    if (counter.endsStep()) yield;
  }
  return lines;
}

/** The body of an answer to `DELETE`. */
export function writeBatchDeletion(id: string): string {
  return JSON.stringify(inWireOrder(messageBatchDeletion, { id, type: "message_batch_deleted" }));
}

function batchObject(batch: BatchState, baseUrl: string): unknown {
  const { id, ended, counts, cancelledAt, created, expires } = batch;
  const object: MessageBatch = {
    id,
    type: "message_batch",
    processing_status: ended ? "ended" : cancelledAt === undefined ? "in_progress" : "canceling",
    // Until the end, all requests count as processing.
    request_counts: {
      processing: ended ? 0 : counts.total,
      succeeded: ended ? counts.completed : 0,
      errored: ended ? counts.failed : 0,
      canceled: ended ? counts.cancelled : 0,
      expired: ended ? counts.expired : 0,
    },
    ended_at: ended ? isoTime(ended.at) : null,
    created_at: isoTime(created),
    expires_at: isoTime(expires),
    archived_at: null,
    cancel_initiated_at: cancelledAt === undefined ? null : isoTime(cancelledAt),
    results_url: ended ? `${baseUrl}/v1/messages/batches/${id}/results` : null,
  };
  return inWireOrder(messageBatch, object);
}
