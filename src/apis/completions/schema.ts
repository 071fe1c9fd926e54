import * as z from "zod";
import { usage } from "../chat/schema.ts";

const logprobs = z
  .object({
    tokens: z.array(z.string()).optional(),
    token_logprobs: z.array(z.number().nullable()).optional(),
    top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullable().optional(),
    text_offset: z.array(z.int()).optional(),
  })
  .nullable()
  .optional();

/**
 * An answer of OpenAI's legacy completions: a chunk or a whole answer, which have one form. `finish_reason` is `null` in a chunk that is
 * not the last one. Source: OpenAI's OpenAPI document, `CreateCompletionResponse`.
 */
export const completion = z.object({
  id: z.string(),
  object: z.literal("text_completion"),
  created: z.int(),
  model: z.string(),
  system_fingerprint: z.string().nullable().optional(),
  choices: z.array(
    z.object({
      text: z.string(),
      index: z.int().min(0),
      logprobs,
      finish_reason: z.enum(["stop", "length", "content_filter"]).nullable(),
    }),
  ),
  usage: usage.nullable().optional(),
});
