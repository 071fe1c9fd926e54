import * as z from "zod";

/*
 * The objects that OpenAI's chat completions answer with. The keys of each shape are in the order in which OpenAI writes them.
 *
 * Members are required where the specification requires them; OpenAI sends more of them than that. Unknown members are allowed, as the
 * specification allows them. Source: OpenAI's OpenAPI document, `CreateChatCompletionStreamResponse`, `CreateChatCompletionResponse`,
 * `Error`; recordings of 2024 to 2026.
 */

const count = z.int().min(0);

/** The tokens of a request and its answer, also of the legacy completions. */
export const usage = z.object({
  prompt_tokens: count,
  completion_tokens: count.optional(),
  total_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count.optional(), audio_tokens: count.optional() }).optional(),
  completion_tokens_details: z
    .object({
      reasoning_tokens: count.optional(),
      audio_tokens: count.optional(),
      accepted_prediction_tokens: count.optional(),
      rejected_prediction_tokens: count.optional(),
    })
    .optional(),
});

const tokenAlternative = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.int().min(0).max(255)).nullable(),
});
const token = tokenAlternative.extend({ top_logprobs: z.array(tokenAlternative) });
const logprobs = z
  .object({ content: z.array(token).nullable(), refusal: z.array(token).nullable() })
  .nullable()
  .optional();

const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);
const serviceTier = z.enum(["auto", "default", "flex", "scale", "priority"]).nullable().optional();
const fingerprint = z.string().nullable().optional();

const chunkCall = z.object({
  index: count,
  id: z.string().optional(),
  type: z.enum(["function", "custom"]).optional(),
  function: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
});

const delta = z.object({
  role: z.enum(["developer", "system", "user", "assistant", "tool"]).optional(),
  content: z.string().nullable().optional(),
  refusal: z.string().nullable().optional(),
  tool_calls: z.array(chunkCall).optional(),
  function_call: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
  audio: z.unknown().optional(),
});

const chunkChoice = z
  .object({ index: count, delta, logprobs, finish_reason: finishReason.nullable().optional() })
  // The specification requires finish_reason; OpenAI's own last chunk of an audio answer does not have it.
  .refine((choice) => choice.finish_reason !== undefined || "audio" in choice.delta, {
    path: ["finish_reason"],
    message: "is missing",
  });

export const chatChunk = z.object({
  id: z.string(),
  object: z.literal("chat.completion.chunk"),
  created: z.int(),
  model: z.string(),
  service_tier: serviceTier,
  system_fingerprint: fingerprint,
  choices: z.array(chunkChoice),
  usage: usage.nullable().optional(),
});

const toolCall = z.discriminatedUnion("type", [
  z.object({
    id: z.string(),
    type: z.literal("function"),
    function: z.object({ name: z.string(), arguments: z.string() }),
  }),
  z.object({ id: z.string(), type: z.literal("custom"), custom: z.object({ name: z.string(), input: z.string() }) }),
]);

const message = z.object({
  role: z.literal("assistant"),
  content: z.string().nullable(),
  tool_calls: z.array(toolCall).optional(),
  function_call: z.object({ name: z.string(), arguments: z.string() }).optional(),
  refusal: z.string().nullable().optional(),
  annotations: z.array(z.looseObject({})).optional(),
});

export const chatCompletion = z.object({
  id: z.string(),
  object: z.literal("chat.completion"),
  created: z.int(),
  model: z.string(),
  choices: z.array(z.object({ index: count, message, logprobs, finish_reason: finishReason })),
  usage: usage.optional(),
  service_tier: serviceTier,
  system_fingerprint: fingerprint,
});

/** The body of an error, of every API of OpenAI. */
export const failure = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
  }),
});
