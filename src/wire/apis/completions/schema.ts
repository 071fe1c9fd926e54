import * as z from "zod";
import { completionUsage, filled, unixSeconds } from "../chat/schema.ts";

const logprob = z.number().meta({ float: true });

export const completionLogprobsSchema = z.object({
  tokens: z.array(z.string()).optional(),
  token_logprobs: z.array(logprob.nullable()).optional(),
  top_logprobs: z.array(z.record(z.string(), logprob).nullable()).nullable().optional(),
  text_offset: z.array(z.int()).optional(),
});

export const completionFinishReasons = z.enum(["stop", "length", "content_filter"]);

export const completionChoice = z.object({
  text: z.string(),
  index: z.int().min(0),
  logprobs: completionLogprobsSchema.nullable().optional().meta({ lean: "always", exact: "always" }),
  finish_reason: completionFinishReasons.nullable(),
});

/**
 * An answer of OpenAI's legacy completions: a chunk or a whole answer, which have the same form. `finish_reason` is `null` in every chunk
 * but the last one of its choice. Profile `exact` has no `system_fingerprint`, and its chunks have `model` after `choices`. Source: OpenAI's
 * OpenAPI document, `CreateCompletionResponse`; recordings of 2025 and 2026.
 */
export const completion = z.object({
  id: filled,
  object: z.literal("text_completion"),
  created: unixSeconds,
  model: filled,
  system_fingerprint: z.string().nullable().optional().meta({ lean: "always", exact: "never" }),
  choices: z.array(completionChoice),
  usage: completionUsage.nullable().optional().meta({ lean: "sometimes", exact: "always" }),
  timings: z.unknown().optional().meta({ extension: "llama.cpp", lean: "never", exact: "never" }),
});
