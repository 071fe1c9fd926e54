import { checkContinuation } from "../../core/request.ts";
import { estimateTokens } from "../../core/estimate-tokens.ts";
import type { ChatPrompt } from "../../core/request.ts";
import { runSync, type Steps } from "../../core/steps.ts";
import type { ReadChoicesRequest } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { completeRequest, completeRequestedAnswer, emptyDraft, type RequestDraft } from "../request/draft.ts";
import {
  acceptedParameter,
  inOrder,
  readParameters,
  type RequestParameter,
  setDraftMember,
  supportedParameter,
} from "../request/parameter.ts";
import { invalidValue, unknownParameter, unsupportedEnumValue } from "../request/refusals.ts";
import { applyRules } from "../request/vendor-rules.ts";
import { resolveTools, toolParameters } from "./tools.ts";
import * as z from "zod";
import { isObject } from "../../core/json.ts";
import { commonParameters, outputParameters } from "../request/common-parameters.ts";
import { checkMetadata, metadataShape } from "../request/check-schema.ts";
import { extensionParameters, refusedParameters, refusedSamplers } from "../request/extension-parameters.ts";
import { expecting, integerShape } from "../request/shapes.ts";
import { chatPromptCacheOptions, type ChatRequestMessage, messagesShape } from "./request-schema.ts";
import { readMessages } from "./read-messages.ts";
import { chatCheckOrder, chatRules, parameterOfModel } from "./request-rules.ts";
import { chatServiceTiers } from "./schema.ts";

const chat = ["chat"] as const;

/** Source: OpenAI's guide to prompt caching; `12h` since 2026-11-03. */
const cacheModes: readonly string[] = ["implicit", "explicit"];
const cacheTtls: readonly string[] = ["30m", "12h"];

const acceptedParameters: readonly RequestParameter[] = [
  acceptedParameter(
    "service_tier",
    {
      endpoints: chat,
      note: "The order in queues: `priority` first, `flex` last ([upstreams.md](upstreams.md#queues)). Profile `exact` names the tier in the answer: `fast` for `fast` and `priority`, as OpenAI does (`priority` for a model that stands for GPT-5.6 or an older one).",
      shape: z.enum(chatServiceTiers),
    },
    (value, { asked }) => {
      asked.serviceTier = value;
    },
  ),
  acceptedParameter("store", { endpoints: chat, note: "No effect: chat answers are not stored.", shape: z.boolean() }),
  acceptedParameter(
    "metadata",
    {
      endpoints: chat,
      note: "No effect: OpenAI keeps it with stored answers. At most 16 strings.",
      shape: metadataShape,
    },
    checkMetadata,
  ),
  supportedParameter(
    "prediction",
    {
      endpoints: chat,
      note: "A local model takes draft tokens from it and verifies several of them in one decode step where that is faster. The answer does not change.",
      shape: z.object({ type: z.literal("content"), content: z.unknown() }, expecting("an object")),
    },
    ({ content }, { request }) => {
      request.prediction = textOf(content);
    },
  ),
  acceptedParameter("safety_identifier", { endpoints: chat, note: "No effect.", shape: z.string().max(64) }),
  acceptedParameter("prompt_cache_key", {
    endpoints: chat,
    note: "No effect: the prompt cache finds the longest cached prefix of each prompt.",
    shape: z.string(),
  }),
  acceptedParameter("prompt_cache_retention", {
    endpoints: chat,
    note: "No effect on local models.",
    shape: z.enum(["in_memory", "in-memory", "24h"]),
  }),
  acceptedParameter(
    "prompt_cache_options",
    {
      endpoints: chat,
      note: "`mode` and `ttl` have no effect on local models. Further members belong to Responses: profile `exact` refuses them, `lean` ignores them with a warning.",
      shape: chatPromptCacheOptions,
    },
    checkCacheOptions,
  ),
];

const parameters: readonly RequestParameter[] = [
  supportedParameter("messages", { endpoints: chat, shape: messagesShape, required: true }, function* (value, draft) {
    draft.messages = yield* readMessages(value, draft);
  }),
  ...commonParameters,
  supportedParameter(
    "max_tokens",
    {
      endpoints: chat,
      note: "At least 1; in profile `lean`, -1 is no limit. If `max_completion_tokens` is present too, the smaller of the two applies.",
      shape: integerShape(1),
    },
    setDraftMember("maxTokens"),
  ),
  supportedParameter(
    "max_completion_tokens",
    { endpoints: chat, note: "At least 1; in profile `lean`, -1 is no limit.", shape: integerShape(1) },
    setDraftMember("maxCompletionTokens"),
  ),
  supportedParameter("logprobs", { endpoints: chat, shape: z.boolean() }, setDraftMember("logprobs")),
  supportedParameter(
    "top_logprobs",
    { endpoints: chat, note: "0 to 20. Requires `logprobs: true`.", shape: integerShape(0, 20) },
    setDraftMember("topLogprobs"),
  ),
  ...toolParameters,
  supportedParameter(
    "reasoning_effort",
    {
      endpoints: chat,
      note: "Passed to the chat template. If the template does not support efforts, `none` disables reasoning, and every value but `none` and `minimal` enables it.",
      shape: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    },
    setDraftMember("reasoningEffort"),
  ),
  supportedParameter(
    "verbosity",
    {
      endpoints: chat,
      note: "Sent to upstreams. No effect on local models.",
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

/** Every parameter of `POST /v1/chat/completions`. */
export const chatParameters: readonly RequestParameter[] = inOrder(parameters, chatCheckOrder);

/** Throws `FailureError` for what OpenAI refuses, in profile `exact`. OpenAI's words for unknown members are those of Responses. */
function checkCacheOptions(options: z.infer<typeof chatPromptCacheOptions>, draft: RequestDraft): void {
  const { profile, warnings, forwards } = draft;
  // An upstream of the same API judges them itself.
  if (forwards) return;
  const path = "prompt_cache_options";
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(chatPromptCacheOptions.shape, name));
  if (!profile.judgesAsVendor) {
    if (unknown !== undefined) warnings.push(`${path} has members that have no effect in chat completions`);
    return;
  }
  if (unknown !== undefined) throw unknownParameter(`${path}.${unknown}`);
  const { mode, ttl } = options;
  if (typeof mode === "string" && !cacheModes.includes(mode))
    throw unsupportedEnumValue(`${path}.mode`, mode, cacheModes);
  if (typeof ttl === "string" && !cacheTtls.includes(ttl)) throw unsupportedEnumValue(`${path}.ttl`, ttl, cacheTtls);
}

/** Returns a text, or the joined texts of a list of content parts. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const parts: readonly unknown[] = Array.isArray(content) ? content : [];
  return parts.map((part) => (isObject(part) && typeof part["text"] === "string" ? part["text"] : "")).join("");
}

/** Reads the body of `POST /v1/chat/completions`. Throws `FailureError` with OpenAI's messages. */
export function readChatRequest(body: unknown, requestId: string, options?: ReadOptions): ReadChoicesRequest {
  return runSync(chatRequestInSteps(body, requestId, options));
}

/** The same in steps, so that a long body does not block other requests. */
export function* chatRequestInSteps(
  body: unknown,
  requestId: string,
  options?: ReadOptions,
): Steps<ReadChoicesRequest> {
  const draft = emptyDraft("chat", options);
  const members = yield* readParameters(body, chatParameters, draft, {
    checkNames: (names) => parameterOfModel(names, draft.standsFor),
  });
  // The schema has checked them.
  const subject = { body: members, messages: members["messages"] as readonly ChatRequestMessage[], draft };
  yield* applyRules(chatRules, subject, "OpenAI", draft);
  const { legacy, named, ...tools } = resolveTools(draft);
  checkTemplate(draft);
  checkLogprobs(draft);
  const { messages, template, warnings } = draft;
  const prompt: ChatPrompt = legacy
    ? { kind: "chat", messages, legacyFunctions: true, template }
    : { kind: "chat", messages, template };
  const request = Object.assign(completeRequest(draft, requestId, members), { prompt }, tools);
  if (draft.logprobs) request.logprobs = { top: draft.topLogprobs ?? 0 };
  const asked = completeRequestedAnswer(draft);
  asked.logprobs = draft.logprobs ?? false;
  asked.namedToolChoice = named;
  asked.legacyFunctions = legacy;
  asked.estimatePrompt = () => estimateTokens(request);
  return { request, requested: asked, warnings };
}

function checkLogprobs({ logprobs, topLogprobs, profile, warnings }: RequestDraft): void {
  if (topLogprobs === undefined || logprobs) return;
  if (topLogprobs > 0 || profile.judgesAsVendor) {
    throw invalidValue("top_logprobs", "'top_logprobs' is only allowed when 'logprobs' is true.");
  }
  warnings.push("top_logprobs: 0 has no effect without logprobs");
}

function checkTemplate({ template, messages, warnings }: RequestDraft): void {
  checkContinuation(messages, template);
  if (template.responsePrefix !== undefined && template.addGenerationPrompt === false) {
    warnings.push("response_prefix is ignored, because add_generation_prompt is false");
  }
}
