import * as z from "zod";
import type { ImageProblem } from "../../core/events.ts";

/*
 * The objects of OpenAI's answers to chat completions, one schema for each object of the official SDKs. The keys of a shape are in the
 * order of the wire.
 *
 * A member is required where the specification requires it; OpenAI sends more of them. Unknown members are allowed, as in the
 * specification. `.meta()` says how often the answers of a profile have a member (see `Presence`), and names the project whose extension
 * it is. Source: OpenAI's OpenAPI document, `CreateChatCompletionStreamResponse`, `CreateChatCompletionResponse`, `Error`; recordings of
 * 2024 to 2026.
 */

const count = z.int().min(0);
/** Ids and names of models are never empty (recordings). */
export const filled = z.string().min(1);
/** Unix time in seconds: a larger number is one of milliseconds. */
export const unixSeconds = z.int().min(1).max(99_999_999_999);

/** Profile `lean` leaves it out; OpenAI sends it in every answer (recordings since 2025-08). */
const exactOnly = { lean: "never", exact: "always" };
const inBothProfiles = { lean: "always", exact: "always" };
/** A member that another project added to OpenAI's API. It is sent on request only. */
const extensionOf = (project: string): z.ZodType =>
  z.unknown().optional().meta({ extension: project, lean: "never", exact: "never" });

/** OpenAI writes a zero for these where no tokens were counted (recordings of 2025 and 2026). */
const countOrZero = count.optional().meta({ exact: "always" });

export const promptTokensDetails = z.object({
  cached_tokens: countOrZero,
  cache_write_tokens: count.nullish(),
  audio_tokens: countOrZero,
  text_tokens: count.nullish(),
  image_tokens: count.nullish(),
});

export const completionTokensDetails = z.object({
  reasoning_tokens: countOrZero,
  audio_tokens: countOrZero,
  accepted_prediction_tokens: countOrZero,
  rejected_prediction_tokens: countOrZero,
  text_tokens: count.nullish(),
});

/** The token counts of a request and its answer; legacy completions have the same object. */
export const completionUsage = z.object({
  prompt_tokens: count,
  completion_tokens: count.optional(),
  total_tokens: count,
  prompt_tokens_details: promptTokensDetails.optional(),
  completion_tokens_details: completionTokensDetails.optional(),
});

export const chatTopLogprob = z.object({
  token: z.string(),
  logprob: z.number().meta({ float: true }),
  bytes: z.array(z.int().min(0).max(255)).nullable(),
});
export const chatTokenLogprob = chatTopLogprob.extend({ top_logprobs: z.array(chatTopLogprob) });
export const choiceLogprobs = z.object({
  content: z.array(chatTokenLogprob).nullable(),
  refusal: z.array(chatTokenLogprob).nullable(),
});
/** OpenAI leaves it out for some models (`hasLogprobsKey`). */
const logprobs = choiceLogprobs.nullable().optional().meta({ lean: "always", exact: "sometimes" });

export const chatFinishReason = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);
/** `fast` since openai 7.24: an answer has the tier that served it. */
export const chatServiceTiers = ["auto", "default", "flex", "scale", "priority", "fast"] as const;
const serviceTier = z.enum(chatServiceTiers).nullable().optional().meta(exactOnly);
const systemFingerprint = z.string().nullable().optional().meta(inBothProfiles);
/** Reasoning has no member in OpenAI's API; these are the names of DeepSeek, vLLM and llama.cpp, and of OpenRouter and Ollama. */
const reasoningText = z.unknown().optional().meta({ exact: "never" });

export const chunkToolCall = z.object({
  index: count,
  id: z.string().optional(),
  type: z.enum(["function", "custom"]).optional(),
  function: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
  custom: z.object({ name: z.string().optional(), input: z.string().optional() }).optional(),
});

/** Audio of an answer. Truewire generates none and passes on that of an upstream. */
export const chatAudio = z.object({
  id: z.string(),
  data: z.string(),
  transcript: z.string(),
  expires_at: z.int(),
});
/** Audio in a stream has another order (recordings of 2025). */
export const chunkAudio = z.object({
  id: z.string().optional(),
  transcript: z.string().optional(),
  data: z.string().optional(),
  expires_at: z.int().optional(),
});

export const chunkDelta = z.object({
  role: z.enum(["developer", "system", "user", "assistant", "tool"]).optional(),
  content: z.string().nullable().optional(),
  reasoning_content: reasoningText,
  reasoning: reasoningText,
  tool_calls: z.array(chunkToolCall).optional(),
  function_call: z.object({ name: z.string().optional(), arguments: z.string().optional() }).optional(),
  refusal: z.string().nullable().optional(),
  audio: chunkAudio.optional(),
});

export const chunkChoice = z
  .object({
    index: count,
    delta: chunkDelta,
    logprobs,
    finish_reason: chatFinishReason.nullable().optional().meta(inBothProfiles),
    stop_str: extensionOf("vLLM"),
    token_ids: extensionOf("vLLM"),
  })
  // The specification requires finish_reason; OpenAI's own last chunk of an audio answer does not have it.
  .refine((choice) => choice.finish_reason !== undefined || "audio" in choice.delta, {
    path: ["finish_reason"],
    message: "is missing",
  });

export const chatChunk = z.object({
  id: filled,
  object: z.literal("chat.completion.chunk"),
  created: unixSeconds,
  model: filled,
  service_tier: serviceTier,
  system_fingerprint: systemFingerprint,
  choices: z.array(chunkChoice),
  moderation: z.unknown().optional(),
  prompt_logprobs: extensionOf("vLLM"),
  prompt_token_ids: extensionOf("vLLM"),
  prompt_progress: extensionOf("llama.cpp"),
  usage: completionUsage.nullable().optional(),
  timings: extensionOf("llama.cpp"),
  // Unless the request says otherwise.
  obfuscation: z.string().optional().meta({ since: "2025-08-05" }),
});

export const functionToolCall = z.object({
  id: z.string(),
  type: z.literal("function"),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
export const chatCustomToolCall = z.object({
  id: z.string(),
  type: z.literal("custom"),
  custom: z.object({ name: z.string(), input: z.string() }),
});

export const chatMessage = z.object({
  role: z.literal("assistant"),
  content: z.string().nullable(),
  reasoning_content: reasoningText,
  reasoning: reasoningText,
  tool_calls: z.array(z.discriminatedUnion("type", [functionToolCall, chatCustomToolCall])).optional(),
  function_call: z.object({ name: z.string(), arguments: z.string() }).optional(),
  refusal: z.string().nullable().optional().meta({ exact: "always" }),
  audio: chatAudio.nullable().optional(),
  annotations: z.array(z.looseObject({})).optional().meta(exactOnly),
});

export const chatChoice = z.object({
  index: count,
  message: chatMessage,
  logprobs,
  finish_reason: chatFinishReason,
  stop_str: extensionOf("vLLM"),
  token_ids: extensionOf("vLLM"),
});

export const chatCompletion = z.object({
  id: filled,
  object: z.literal("chat.completion"),
  created: unixSeconds,
  model: filled,
  choices: z.array(chatChoice),
  // Profile `lean` leaves out what the source has not counted.
  usage: completionUsage.optional().meta({ lean: "sometimes", exact: "always" }),
  timings: extensionOf("llama.cpp"),
  service_tier: serviceTier,
  system_fingerprint: systemFingerprint,
  prompt_logprobs: extensionOf("vLLM"),
  prompt_token_ids: extensionOf("vLLM"),
  moderation: z.unknown().optional(),
  // Of stored answers (openai 7.57). No recording shows its place.
  metadata: z.record(z.string(), z.string()).nullable().optional().meta({ lean: "never" }),
});

export const errorObjectSchema = z.object({
  message: filled,
  type: z.string(),
  param: z.string().nullable(),
  code: z.string().nullable(),
});

/** The body of an error, in every API of OpenAI. */
export const errorBody = z.object({ error: errorObjectSchema });

/** The codes of images that cannot be used. Source: OpenAI's OpenAPI document of 2026-08-21, `ResponseErrorCode`; the words' sources. */
export const imageErrorCodes = {
  base64: "invalid_base64_image",
  format: "invalid_image_format",
  damaged: "image_parse_error",
  url: "invalid_image_url",
  bytes: "image_too_large",
  side: "image_too_large",
} as const;

const imageFormats = "['png', 'jpeg', 'gif', 'webp']";

/**
 * Chat's words for images that cannot be used; their `param` is null. No source shows words for too many pixels. Sources: the issues
 * sipherxyz/comfyui-art-venture#75 (base64), STranslate/STranslate#277 (format), marketing-factory/ai-filemetadata#26 (damaged) and
 * CosmosShadow/gptpdf#6 (bytes); a recording of Arize-ai/openinference (url).
 */
export function imageErrorWords(image: ImageProblem): string | undefined {
  const unsupported = "You uploaded an unsupported image. Please make sure your image";
  switch (image.why) {
    case "base64":
      return "Invalid base64 image_url.";
    case "format":
      return `${unsupported} has of one the following formats: ${imageFormats}.`;
    case "damaged":
      return `${unsupported} is valid.`;
    case "url":
      return `Error while downloading ${image.url}.`;
    case "bytes":
      return `${unsupported} is below ${image.most / 2 ** 20} MB in size and is of one the following formats: ${imageFormats}.`;
    case "side":
      return undefined;
  }
}
