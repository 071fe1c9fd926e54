import * as z from "zod";

/*
 * The files of OpenAI's and Anthropic's APIs. Keys are in the order of the wire. Sources: OpenAI's OpenAPI document, `OpenAIFile`,
 * `ListFilesResponse`, `DeleteFileResponse`, `FileExpirationAfter`; the types of Anthropic's SDK 1.12.0, `BetaFileMetadata`.
 */

/** What a client of OpenAI's API may upload a file for. */
export const uploadPurposes = ["assistants", "batch", "fine-tune", "vision", "user_data", "evals"] as const;

export const openaiFile = z.object({
  object: z.literal("file"),
  id: z.string(),
  purpose: z.enum([...uploadPurposes, "assistants_output", "batch_output", "fine-tune-results"]),
  filename: z.string(),
  bytes: z.int(),
  created_at: z.int(),
  expires_at: z.int().nullable().optional(),
  status: z.enum(["uploaded", "processed", "error"]),
  status_details: z.string().nullable().optional(),
});

export type OpenaiFile = z.infer<typeof openaiFile>;

export const openaiFileDeletion = z.object({ object: z.literal("file"), deleted: z.boolean(), id: z.string() });

/** When a file expires, counted from its upload. */
export const expiresAfter = z.object({ anchor: z.literal("created_at"), seconds: z.int().min(3600).max(2_592_000) });

export const anthropicFile = z.object({
  type: z.literal("file"),
  id: z.string(),
  size_bytes: z.int(),
  created_at: z.string(),
  filename: z.string(),
  mime_type: z.string(),
  downloadable: z.boolean().optional(),
  expires_at: z.string().nullable().optional(),
  scope: z
    .object({ id: z.string(), type: z.literal("session") })
    .nullable()
    .optional(),
});

export type AnthropicFile = z.infer<typeof anthropicFile>;

export const anthropicFileDeletion = z.object({ id: z.string(), type: z.literal("file_deleted").optional() });

/** The seconds after which a file of Anthropic's API may expire. */
export const expiresInSeconds = z.int().min(3600).max(7_776_000);
