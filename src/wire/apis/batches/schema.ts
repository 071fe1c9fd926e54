import * as z from "zod";
import { metadataShape } from "../request/check-schema.ts";
import { expiresAfter } from "../files/schema.ts";

/*
 * The batches of OpenAI's and Anthropic's APIs. Keys are in the order of the wire. Sources: OpenAI's OpenAPI document, `Batch`, `BatchError`,
 * `BatchRequestOutput`, `CreateBatchRequest`; the types of Anthropic's SDK 1.12.0, `MessageBatch`; recordings of 2025.
 */

/** The paths of requests in OpenAI's batches that Truewire answers. */
export const batchEndpoints = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"] as const;

/** The body of `POST /v1/batches`. */
export const createBatch = z.object({
  input_file_id: z.string().min(1),
  endpoint: z.enum(batchEndpoints),
  completion_window: z.enum(["24h"]),
  metadata: metadataShape.nullish(),
  output_expires_after: expiresAfter.nullish(),
});

const batchError = z.object({
  code: z.string().optional(),
  message: z.string().optional(),
  param: z.string().nullable().optional(),
  line: z.int().nullable().optional(),
});

export type BatchError = z.infer<typeof batchError>;

const batchUsage = z.object({
  input_tokens: z.int(),
  input_tokens_details: z.object({ cached_tokens: z.int() }),
  output_tokens: z.int(),
  output_tokens_details: z.object({ reasoning_tokens: z.int() }),
  total_tokens: z.int(),
});

const time = z.int().nullable().optional();

export const openaiBatch = z.object({
  id: z.string(),
  object: z.literal("batch"),
  endpoint: z.string(),
  model: z.string().nullable().optional(),
  errors: z
    .object({ object: z.string().optional(), data: z.array(batchError).optional() })
    .nullable()
    .optional(),
  input_file_id: z.string(),
  completion_window: z.string(),
  status: z.enum([
    "validating",
    "failed",
    "in_progress",
    "finalizing",
    "completed",
    "expired",
    "cancelling",
    "cancelled",
  ]),
  output_file_id: z.string().nullable().optional(),
  error_file_id: z.string().nullable().optional(),
  created_at: z.int(),
  in_progress_at: time,
  expires_at: time,
  finalizing_at: time,
  completed_at: time,
  failed_at: time,
  expired_at: time,
  cancelling_at: time,
  cancelled_at: time,
  request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }).optional(),
  usage: batchUsage.optional(),
  metadata: z.record(z.string(), z.string()).nullable().optional(),
});

export type OpenaiBatch = z.infer<typeof openaiBatch>;

const isoTime = z.string().nullable();

export const messageBatch = z.object({
  id: z.string(),
  type: z.literal("message_batch"),
  processing_status: z.enum(["in_progress", "canceling", "ended"]),
  request_counts: z.object({
    processing: z.int(),
    succeeded: z.int(),
    errored: z.int(),
    canceled: z.int(),
    expired: z.int(),
  }),
  ended_at: isoTime,
  created_at: z.string(),
  expires_at: z.string(),
  archived_at: isoTime,
  cancel_initiated_at: isoTime,
  results_url: z.string().nullable(),
});

export type MessageBatch = z.infer<typeof messageBatch>;

export const messageBatchDeletion = z.object({ id: z.string(), type: z.literal("message_batch_deleted") });
