import { type FailureError, invalidImage, invalidRequest } from "../../core/failure.ts";
import { StepCounter, type Steps } from "../../core/steps.ts";
import { openaiModel } from "../openai-models.ts";
import { imageDefect } from "../request/check-image.ts";
import type { RequestDraft } from "../request/draft.ts";
import { modelOnlyCompletes, notAllowedToSample } from "../failures.ts";
import { listed, unsupportedParameter, unsupportedValue } from "../request/refusals.ts";
import { lacksWordJson, type VendorRule } from "../request/vendor-rules.ts";
import type { ChatRequestMessage } from "./request-schema.ts";
import { imageErrorWords } from "./schema.ts";

/**
 * The order in which OpenAI checks the members of a chat request, each against its type and its range. Missing members and unknown names come
 * before it, and the rules below after it. Source: kangminlee-maker/local-OAuth-CLI-API-adapter, docs/conformance-matrix.md, 5.5.5, pairs of
 * mistakes sent to gpt-5.6-terra on 2026-08-30.
 */
export const chatCheckOrder: readonly string[] = [
  "model",
  "messages",
  "functions",
  "function_call",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "max_completion_tokens",
  "n",
  "temperature",
  "top_p",
  "presence_penalty",
  "frequency_penalty",
  "logprobs",
  "top_logprobs",
  "user",
  "seed",
  "moderation",
  "safety_identifier",
  "prompt_cache_options",
  "prompt_cache_key",
  "prompt_cache_retention",
  "response_format",
  "service_tier",
  "max_tokens",
  "reasoning_effort",
  "logit_bias",
  "stop",
  "stream",
  "stream_options",
  "store",
  "metadata",
  "prediction",
  "verbosity",
];

/** A chat request whose members are valid, each by itself. */
export interface ChatSubject {
  readonly body: Body;
  readonly messages: readonly ChatRequestMessage[];
  readonly draft: RequestDraft;
}

type Body = Readonly<Record<string, unknown>>;

/** What OpenAI refuses across the members and messages of a chat request, in its order. */
export const chatRules: readonly VendorRule<ChatSubject>[] = [
  valueOfModel,
  bothLimits,
  missingContent,
  unpairedCalls,
  unusableImage,
  missingWordJson,
];

/** The parameters that a reasoning model refuses with any value. */
const refusedParameters = ["max_tokens", "logit_bias", "stop", "prediction"];
/** The parameters that it refuses while it reasons, and the values that have no effect. */
const refusedWhileReasoning = { temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, logprobs: false };

/**
 * Returns the error for the first member that the model of OpenAI does not have that the requested model represents. Sources: as
 * `openaiModel`; recordings of 2025-07 (o1-mini, `stop`) and 2025-08 (gpt-5-nano, `max_tokens`).
 */
export function parameterOfModel(body: Body, standsFor = ""): FailureError | undefined {
  const { kind, efforts } = openaiModel(standsFor);
  if (kind === "embeddings") return notAllowedToSample();
  if (kind === "completions") return modelOnlyCompletes();
  const name = efforts && refusedParameters.find((one) => isSet(body[one]));
  if (name === undefined) return undefined;
  const { failure } = unsupportedParameter(name);
  return name === "max_tokens"
    ? invalidRequest(`${failure.message} Use 'max_completion_tokens' instead.`, name, failure.code)
    : unsupportedParameter(name);
}

/** The values that this model refuses. Sources: as `parameterOfModel`; recorded on 2026-09-24 with gpt-6-luna. */
function valueOfModel({
  body,
  draft: { standsFor = "", reasoningEffort: effort },
}: ChatSubject): FailureError | undefined {
  const { efforts, defaults, callsOnlyWithoutEffort } = openaiModel(standsFor);
  if (!efforts) return undefined;
  // Only Responses has `max`.
  const known = efforts.filter((one) => one !== "max");
  if (effort !== undefined && !known.includes(effort))
    return unsupportedValue("reasoning_effort", `'${effort}'`, `Supported values are: ${listed(known, "and")}.`);
  if ((effort ?? defaults?.effort) === "none") return undefined;
  if (callsOnlyWithoutEffort && Array.isArray(body["tools"]))
    return invalidRequest(
      `Function tools with reasoning_effort are not supported for ${standsFor} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
      "reasoning_effort",
    );
  for (const [name, usual] of Object.entries(refusedWhileReasoning)) {
    const value = body[name];
    if (!isSet(value) || value === usual) continue;
    return name === "temperature"
      ? unsupportedValue(name, String(value), "Only the default (1) value is supported.")
      : unsupportedParameter(name);
  }
  return undefined;
}

/** Source: langchain-ai/langgraph#5943. */
function bothLimits({ body }: ChatSubject): FailureError | undefined {
  if (!isSet(body["max_tokens"]) || !isSet(body["max_completion_tokens"])) return undefined;
  const message = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
  return invalidRequest(message, "max_tokens", "invalid_parameter_combination");
}

/** Only an assistant's message may have something in place of a content. OpenAI's `param` has a dot before the bracket in these errors. */
function* missingContent({ messages }: ChatSubject): Steps<FailureError | undefined> {
  const pace = new StepCounter();
  for (const [index, message] of messages.entries()) {
    if (pace.endsStep()) yield;
    if (isSet(message.content) || message.role === "function") continue;
    if (message.role === "assistant") {
      const { tool_calls: calls, function_call: call, refusal, audio } = message;
      if (calls?.length || isSet(call) || isSet(refusal) || isSet(audio)) continue;
    }
    return invalidRequest("Invalid value for 'content': expected a string, got null.", `messages.[${index}].content`);
  }
  return undefined;
}

/**
 * The results of a message's calls follow it directly, and each call has one. Sources: pipecat-ai/pipecat#309 (another role follows) and
 * genkit-ai/genkit#225 (nothing follows) for calls, smarter-sh/smarter#264 for a result without a call, dapr/dapr-agents#145 for a result of
 * another call.
 */
function* unpairedCalls({ messages }: ChatSubject): Steps<FailureError | undefined> {
  const pace = new StepCounter();
  let calls: ReadonlySet<string> | undefined;
  let open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (pace.endsStep()) yield;
    if (message.role === "tool") {
      const { tool_call_id: id } = message;
      if (!calls)
        return invalidRequest(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `messages.[${index}].role`,
        );
      if (!calls.has(id))
        return invalidRequest(
          `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`,
          `messages.[${index}].tool_call_id`,
        );
      open.delete(id);
      continue;
    }
    if (open.size > 0) return unanswered(open, `messages.[${index}].role`);
    const ids = message.role === "assistant" ? (message.tool_calls ?? []).map(({ id }) => id) : [];
    calls = ids.length > 0 ? new Set(ids) : undefined;
    open = new Set(ids);
  }
  return open.size > 0 ? unanswered(open, "messages") : undefined;
}

function unanswered(ids: ReadonlySet<string>, param: string): FailureError {
  const message = `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${[...ids].join(", ")}`;
  return invalidRequest(message, param);
}

/** Images in data URLs that are not base64, or no PNG, JPEG, GIF or WebP. Source: a recording of 2026 with `image/jpeg` and other bytes. */
function* unusableImage({ messages }: ChatSubject): Steps<FailureError | undefined> {
  const pace = new StepCounter();
  for (const { content } of messages) {
    if (pace.endsStep(1 + partsIn(content))) yield;
    if (typeof content === "string") continue;
    for (const part of content ?? []) {
      if (part.type !== "image_url") continue;
      const url = typeof part.image_url === "string" ? part.image_url : part.image_url.url;
      const [head] = /^data:[^,]{0,200},/i.exec(url) ?? [];
      if (head === undefined || !imageDefect(url.slice(head.length))) continue;
      const image = { why: "format" } as const;
      return invalidImage(image, imageErrorWords(image) ?? "", null);
    }
  }
  return undefined;
}

/** Source: quoted with its `param` in 2026. */
function* missingWordJson({ draft, messages }: ChatSubject): Steps<FailureError | undefined> {
  if (draft.outputs[0]?.constraint.type !== "json-object" || !(yield* lacksWordJson(messages))) return undefined;
  return invalidRequest(
    "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    "messages",
  );
}

function partsIn(content: ChatRequestMessage["content"]): number {
  return typeof content === "object" && content !== null ? content.length : 0;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}
