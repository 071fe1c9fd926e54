import { z } from "zod";
import { isObject } from "../../core/json.ts";
import { commonParameters, outputParameters } from "../request/common-parameters.ts";
import { checkMetadata } from "../request/check-metadata.ts";
import { metadataShape } from "../request/metadata-shape.ts";
import { extensionParameters, refusedParameters, refusedSamplers } from "../request/extension-parameters.ts";
import { acceptedParameter, supportedParameter, setDraftMember } from "../request/parameter.ts";
import type { RequestParameter } from "../request/parameter.ts";
import { anyObject, expecting, integerShape } from "../request/shapes.ts";
import { toolParameters } from "./tool-parameters.ts";
import { messagesShape } from "./message-shape.ts";
import { readMessages } from "./read-messages.ts";

const chat = ["chat"] as const;

const acceptedParameters: readonly RequestParameter[] = [
  acceptedParameter("service_tier", {
    endpoints: chat,
    note: "No effect: there is only one tier.",
    shape: z.enum(["auto", "default", "flex", "scale", "priority", "fast"]),
  }),
  acceptedParameter("store", { endpoints: chat, note: "Nothing is stored.", shape: z.boolean() }),
  acceptedParameter(
    "metadata",
    {
      endpoints: chat,
      note: "OpenAI keeps it with stored answers. At most 16 strings.",
      shape: metadataShape,
    },
    checkMetadata,
  ),
  supportedParameter(
    "prediction",
    {
      endpoints: chat,
      note: "It makes answers faster, not different: local models evaluate what they guess from it several tokens at once, where that pays.",
      shape: z.object({ type: z.literal("content"), content: z.unknown() }, expecting("an object")),
    },
    ({ content }, { request }) => {
      request.prediction = textOf(content);
    },
  ),
  acceptedParameter("safety_identifier", { endpoints: chat, shape: z.string().max(64) }),
  acceptedParameter("prompt_cache_key", {
    endpoints: chat,
    note: "The cache finds the longest common beginning by itself.",
    shape: z.string(),
  }),
  acceptedParameter("prompt_cache_retention", {
    endpoints: chat,
    shape: z.enum(["in_memory", "in-memory", "24h"]),
  }),
  acceptedParameter("prompt_cache_options", { endpoints: chat, shape: anyObject() }),
];

/** Every parameter of `POST /v1/chat/completions`. */
export const chatParameters: readonly RequestParameter[] = [
  supportedParameter("messages", { endpoints: chat, shape: messagesShape, required: true }, function* (value, draft) {
    draft.messages = yield* readMessages(value, draft);
  }),
  ...commonParameters,
  supportedParameter(
    "max_tokens",
    { endpoints: chat, note: "At least 1. Where both are given, the smaller counts.", shape: integerShape(1) },
    setDraftMember("maxTokens"),
  ),
  supportedParameter(
    "max_completion_tokens",
    { endpoints: chat, note: "At least 1.", shape: integerShape(1) },
    setDraftMember("maxCompletionTokens"),
  ),
  supportedParameter("logprobs", { endpoints: chat, shape: z.boolean() }, setDraftMember("logprobs")),
  supportedParameter(
    "top_logprobs",
    { endpoints: chat, note: "0 to 20. Needs `logprobs: true`.", shape: integerShape(0, 20) },
    setDraftMember("topLogprobs"),
  ),
  ...toolParameters,
  supportedParameter(
    "reasoning_effort",
    {
      endpoints: chat,
      note: "Passed to the chat template. Where that knows no efforts, `none` turns thinking off and all but `minimal` turn it on.",
      shape: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    },
    setDraftMember("reasoningEffort"),
  ),
  supportedParameter(
    "verbosity",
    {
      endpoints: chat,
      note: "Passed on to an upstream; local models are not trained for it.",
      shape: z.enum(["low", "medium", "high"]),
    },
    setDraftMember("verbosity"),
  ),
  ...outputParameters,
  ...extensionParameters,
  ...acceptedParameters,
  ...refusedParameters,
  ...refusedSamplers,
];

/** Returns a text, or the joined texts of a list of content parts. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts.map((part) => (isObject(part) && typeof part["text"] === "string" ? part["text"] : "")).join("");
}
