import { estimateInputs } from "../../core/estimate-tokens.ts";
import { type FailureError, invalidRequest } from "../../core/failure.ts";
import type { TextPrompt } from "../../core/request.ts";
import { runSync, type Steps } from "../../core/steps.ts";
import type { ReadChoicesRequest, RequestedAnswer } from "../choices-answer.ts";
import { modelOnlyChats, notAllowedToSample } from "../failures.ts";
import { openaiModel } from "../openai-models.ts";
import type { ReadOptions } from "../port.ts";
import { completeRequest, completeRequestedAnswer, emptyDraft, type RequestDraft } from "../request/draft.ts";
import {
  asExtension,
  readParameters,
  type RequestParameter,
  setDraftMember,
  supportedParameter,
} from "../request/parameter.ts";
import * as z from "zod";
import { commonParameters, outputParameters } from "../request/common-parameters.ts";
import { extensionParameters, refusedSamplers } from "../request/extension-parameters.ts";
import {
  arrayTooLong,
  emptyArray,
  invalidType,
  numberAbove,
  parameterFailure,
  pathText,
  valuePhrase,
} from "../request/refusals.ts";
import { integerShape, strings } from "../request/shapes.ts";

const completions = ["completions"] as const;

const tokenId = integerShape(0);

/** Checks token ids, of which there may be a million. Only an invalid one is checked by its schema, for the error message. */
function tokensIn(value: readonly unknown[], before: readonly number[] = []): number[] {
  if (value.length === 0) throw emptyArray(pathText("prompt", before));
  const wrong = value.findIndex((id) => typeof id !== "number" || !Number.isSafeInteger(id) || id < 0);
  const issues = wrong === -1 ? [] : (tokenId.safeParse(value[wrong]).error?.issues ?? []);
  if (wrong !== -1) throw parameterFailure(pathText("prompt", [...before, wrong]), value[wrong], issues);
  return value as number[];
}

const maxPrompts = 10_000;

/** Every parameter of `POST /v1/completions`. */
export const completionParameters: readonly RequestParameter[] = [
  supportedParameter(
    "prompt",
    {
      endpoints: completions,
      note: "A text, an array of texts, an array of token ids, or an array of these.",
      shape: z.unknown(),
      required: true,
    },
    (value, draft) => {
      draft.prompts = prompts(value);
    },
  ),
  // OpenAI checks it before `temperature` (recording of 2025-09-29).
  supportedParameter(
    "max_tokens",
    {
      endpoints: completions,
      note: "Default 16, as in OpenAI's API; in profile `lean`, -1 is no limit. 0 together with `echo` scores the prompt.",
      shape: integerShape(0),
    },
    setDraftMember("maxTokens"),
  ),
  ...commonParameters,
  supportedParameter(
    "logprobs",
    { endpoints: completions, note: "0 to 5; profile `lean` allows up to 20.", shape: integerShape(0) },
    readLogprobs,
  ),
  supportedParameter("echo", { endpoints: completions, shape: z.boolean() }, setDraftMember("echo")),
  supportedParameter(
    "best_of",
    { endpoints: completions, note: "0 to 20, at least `n`. Not for streams.", shape: integerShape(0, 20) },
    setDraftMember("bestOf"),
  ),
  supportedParameter(
    "suffix",
    { endpoints: completions, note: "Requires a model that supports fill-in-the-middle.", shape: z.string() },
    setDraftMember("suffix"),
  ),
  // A format for completions is an extension of other servers, under OpenAI's name.
  ...outputParameters.map(asExtension),
  ...extensionParameters.filter(({ endpoints }) => endpoints.includes("completions")),
  ...refusedSamplers,
];

/**
 * Reads `prompt` in its four forms (specification). The first element decides the form, because trying four schemas on a million tokens
 * is slow.
 */
function prompts(value: unknown): RequestDraft["prompts"] {
  if (typeof value === "string") return [value];
  if (!Array.isArray(value)) {
    const forms = "one of a string, array of strings, array of integers, or array of integer arrays";
    throw invalidType("prompt", forms, valuePhrase(value));
  }
  if (typeof value[0] === "number") return [tokensIn(value)];
  if (value.length > maxPrompts) throw arrayTooLong("prompt", maxPrompts, value.length);
  if (!Array.isArray(value[0])) return checked(strings(maxPrompts, 1), value);
  return value.map((ids: unknown, at) => {
    if (!Array.isArray(ids)) throw invalidType(`prompt[${at}]`, "an array", valuePhrase(ids));
    return tokensIn(ids, [at]);
  });
}

function checked<T>(shape: z.ZodType<T>, value: unknown): T {
  const result = shape.safeParse(value);
  if (!result.success) throw parameterFailure("prompt", value, result.error.issues);
  return result.data;
}

function readLogprobs(value: number, draft: RequestDraft): void {
  const maximum = draft.profile.judgesAsVendor ? 5 : 20;
  if (value > maximum) throw numberAbove("logprobs", "integer", maximum, value);
  draft.topLogprobs = value;
}

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
  options?: ReadOptions,
): Steps<ReadChoicesRequest> {
  const draft = emptyDraft("completions", options);
  const members = yield* readParameters(withPrompt(body), completionParameters, draft, {
    checkNames: () => otherKind(draft),
  });
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
      // An answer that repeats its prompt would count it twice.
      ...(!draft.echo && { estimatePrompt: () => estimateInputs(draft.prompts) }),
    },
    warnings: draft.warnings,
  };
}

/** The error for a model that represents one of OpenAI that does not complete. */
function otherKind({ standsFor }: RequestDraft): FailureError | undefined {
  const kind = standsFor === undefined ? "completions" : openaiModel(standsFor).kind;
  if (kind === "completions") return undefined;
  return kind === "chat" ? modelOnlyChats() : notAllowedToSample();
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
