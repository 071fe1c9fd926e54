import { invalidRequest } from "../../core/failure.ts";
import type { TextPrompt } from "../../core/request.ts";
import { runSync } from "../../core/steps.ts";
import type { Steps } from "../../core/steps.ts";
import type { RequestedAnswer, ReadChoicesRequest } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { lean } from "../profile.ts";
import { completeRequestedAnswer, completeRequest } from "../request/build-request.ts";
import type { RequestDraft } from "../request/draft.ts";
import { emptyDraft } from "../request/draft.ts";
import { readParameters } from "../request/read-parameters.ts";
import { completionParameters } from "./completion-parameters.ts";

/** OpenAI's default for `max_tokens` here (specification); chat has none. */
const defaultMaxTokens = 16;

/** Reads the body of `POST /v1/completions`. Throws `FailureError` with OpenAI's messages. */
export function readCompletionRequest(body: unknown, requestId: string, options?: ReadOptions): ReadChoicesRequest {
  return runSync(completionRequestInSteps(body, requestId, options));
}

/** The same in steps, so that a long body does not block other requests. */
export function* completionRequestInSteps(
  body: unknown,
  requestId: string,
  { profile = lean, forwards = false }: ReadOptions = {},
): Steps<ReadChoicesRequest> {
  const draft = emptyDraft("completions", profile, forwards);
  const members = yield* readParameters(withPrompt(body), completionParameters, draft);
  const bestOf = checkedBestOf(draft);
  draft.maxTokens ??= defaultMaxTokens;
  const prompt: TextPrompt = {
    kind: "text",
    prompts: draft.prompts,
    ...(draft.suffix !== undefined && { suffix: draft.suffix }),
    ...(draft.echo && { echo: true }),
    ...(bestOf !== undefined && { bestOf }),
  };
  return {
    request: {
      ...completeRequest(draft, requestId, members),
      prompt,
      ...(draft.topLogprobs !== undefined && { logprobs: { top: draft.topLogprobs } }),
    },
    requested: {
      ...completeRequestedAnswer(draft),
      logprobs: draft.topLogprobs !== undefined,
      textOffsets: textOffsets(draft),
    },
    warnings: draft.warnings,
  };
}

/** A prompt of `null` means the beginning of a document (specification). */
function withPrompt(body: unknown): unknown {
  if (typeof body !== "object" || body === null || !("prompt" in body) || body.prompt !== null) return body;
  return { ...body, prompt: "" };
}

function checkedBestOf({ bestOf, request: { n = 1, stream } }: RequestDraft): number | undefined {
  if (bestOf === undefined || bestOf === n) return undefined;
  if (bestOf < n) {
    throw invalidRequest(
      `You requested that the server return more choices than it will generate (HINT: You must set 'n' (currently ${n}) to be at most 'best_of' (currently ${bestOf}), or omit either parameter if you don't specifically want to use them.)`,
      "best_of",
    );
  }
  if (stream) throw invalidRequest("Results cannot be streamed when 'best_of' is greater than 'n'.", "best_of");
  return bestOf;
}

/** `text_offset` counts from the beginning of the prompt, echoed or not. The text of a prompt of token ids is not known here. */
function textOffsets({ prompts, echo, request: { n = 1 } }: RequestDraft): RequestedAnswer["textOffsets"] {
  const byPrompt = prompts.map((prompt) => (echo || typeof prompt !== "string" ? 0 : [...prompt].length));
  return { byPrompt, choicesPerPrompt: n };
}
