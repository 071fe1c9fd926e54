import { checkContinuation } from "../../core/continued-message.ts";
import type { ChatPrompt } from "../../core/request.ts";
import { runSync } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { ReadChoicesRequest } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { lean } from "../profile.ts";
import { completeRequestedAnswer, completeRequest } from "../request/build-request.ts";
import type { RequestDraft } from "../request/draft.ts";
import { emptyDraft } from "../request/draft.ts";
import { readParameters } from "../request/read-parameters.ts";
import { invalidValue } from "../request/refusals.ts";
import { resolveTools } from "../request/resolve-tools.ts";
import { chatParameters } from "./chat-parameters.ts";

/** Reads the body of `POST /v1/chat/completions`. Throws `FailureError` with OpenAI's messages. */
export function readChatRequest(body: unknown, requestId: string, options?: ReadOptions): ReadChoicesRequest {
  return runSync(chatRequestInSteps(body, requestId, options));
}

/** The same in steps, so that a long body does not block other requests. */
export function* chatRequestInSteps(
  body: unknown,
  requestId: string,
  { profile = lean, forwards = false }: ReadOptions = {},
): Steps<ReadChoicesRequest> {
  const draft = emptyDraft("chat", profile, forwards);
  const members = yield* readParameters(body, chatParameters, draft);
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
