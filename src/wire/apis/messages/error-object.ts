import type * as z from "zod";
import type { GenerationFailure } from "../../core/events.ts";
import { internalError, malformedJson } from "../failures.ts";
import { inWireOrder } from "../members.ts";
import type { Profile } from "../profile.ts";
import { errorResponse, errorStatuses, imageError } from "./schema.ts";

/** A failure in Anthropic's words. Source: https://platform.claude.com/docs/en/api/errors, and recordings of 2024 to 2026. */
export interface AnthropicError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export function anthropicError(failure: GenerationFailure): AnthropicError {
  const { status, type } = statusAndType(failure);
  const { sourceType = "", details } = failure;
  // An error with a code is Anthropic's own, whatever its status: the class that its SDK throws depends on both.
  if (typeof details?.["error_code"] === "string" && Object.hasOwn(errorStatuses, sourceType))
    return { status: failure.status, type: sourceType, message: messageOf(failure) };
  // OpenAI has the type `invalid_request_error` also for 401 and 404.
  const isAnthropics = Object.hasOwn(errorStatuses, sourceType) && errorStatuses[sourceType]?.includes(failure.status);
  return {
    status,
    type: isAnthropics ? sourceType : type,
    message: messageOf(failure),
  };
}

/**
 * Returns the failure with Anthropic's codes for a body that cannot be decoded, and in profile `exact` with its status for an unsupported
 * coding, and its words for an image that cannot be used. `isBearer`: the client's key is a Bearer token. Sources: @anthropic-ai/sdk 1.12.0,
 * `RequestBodyEncodingUnsupportedError`; an answer of 2026-08-12 to a wrong token.
 */
export function asMessagesFailure(
  failure: GenerationFailure,
  { judgesAsVendor }: Profile,
  isBearer = false,
): GenerationFailure {
  const { image, param, code, status, sourceType } = failure;
  if (isBearer && code === "invalid_api_key" && sourceType === undefined)
    return {
      ...failure,
      message: "Invalid bearer token",
      code: null,
      sourceType: "authentication_error",
      details: bearerDetails,
    };
  if (code === "invalid_content_encoding")
    return { ...failure, details: { error_code: "request_body_encoding_invalid" } };
  if (code === "unsupported_content_encoding")
    return {
      ...failure,
      details: { error_code: "request_body_encoding_unsupported" },
      status: judgesAsVendor ? 400 : status,
    };
  if (!judgesAsVendor) return failure;
  if (failure.limit) return { ...failure, message: limitWords(failure.limit, failure.message) };
  if (!image) return failure;
  return { ...failure, ...imageError(image, dotted(param ?? "messages")), param: null };
}

/** Anthropic's words for its rate limits and spend limits, of 2026; it has none for a day's tokens. `own`: those of this server. */
function limitWords(
  { bound, most, key, model, untilMs }: NonNullable<GenerationFailure["limit"]>,
  own: string,
): string {
  if (untilMs !== undefined)
    return `You have reached your specified API usage limits. You will regain access on ${new Date(untilMs).toISOString().slice(0, 10)} at 00:00 UTC.`;
  if (bound === "day" || bound.startsWith("budget-")) return own;
  if (bound === "concurrency")
    return "Number of concurrent connections has exceeded your rate limit. Please try again later or contact sales at https://claude.com/contact-sales to discuss your options for a rate limit increase.";
  const rate = `${most.toLocaleString("en-US")} ${bound === "tokens" ? "input tokens" : "requests"} per minute`;
  const whose = `(org: ${key}${model === undefined ? "" : `, model: ${model}`})`;
  return `This request would exceed your organization's rate limit of ${rate} ${whose}. For details, refer to: https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later. You may also contact sales at https://claude.com/contact-sales to discuss your options for a rate limit increase.`;
}

const bearerDetails = { error_visibility: "user_facing" };

/**
 * Returns the JSON of an error's body, which is also the data of an `error` event. `requestId`: this server's, which gives way to that of
 * the source's error; `null` if none is known.
 */
export function errorJson(failure: GenerationFailure, requestId: string | null): string {
  const { type, message } = anthropicError(failure);
  const { details } = failure;
  const object: z.input<typeof errorResponse> = {
    type: "error",
    error: {
      type,
      message,
      ...(details && { details }),
    },
    request_id: failure.sourceRequestId ?? requestId,
  };
  return JSON.stringify(inWireOrder(errorResponse, object));
}

function statusAndType({ kind, status }: GenerationFailure): { readonly status: number; readonly type: string } {
  switch (kind) {
    case "authentication":
      return { status: 401, type: "authentication_error" };
    case "permission":
      return { status: 403, type: "permission_error" };
    case "not-found":
      return { status: 404, type: "not_found_error" };
    case "too-large":
      return { status: 413, type: "request_too_large" };
    case "rate-limited":
      return { status: 429, type: "rate_limit_error" };
    // Anthropic's clients wait and retry at 529.
    case "overloaded":
    case "unavailable":
      return { status: 529, type: "overloaded_error" };
    case "timeout":
      return { status: 504, type: "timeout_error" };
    case "bad-answer":
    case "internal":
      return { status: status === 501 ? 501 : 500, type: "api_error" };
    case "context-overflow":
      return { status: 400, type: "invalid_request_error" };
    case "invalid-request":
      if (status === 402) return { status, type: "billing_error" };
      return { status: status === 422 ? 400 : status, type: "invalid_request_error" };
  }
}

/**
 * Anthropic's words where they are fixed and clients look for them: Claude Code compacts its history only at "prompt is too long: N tokens
 * > M maximum". A source's own words are kept.
 */
function messageOf(failure: GenerationFailure): string {
  const { kind, message, tokens, model, code, sourceType, param } = failure;
  switch (kind) {
    case "context-overflow":
      if (/^prompt is too long: \d+ tokens > \d+ maximum/.test(message)) return message;
      return `prompt is too long: ${tokens ? `${tokens.asked} tokens > ${tokens.most} maximum` : message}`;
    case "not-found":
      return model === undefined ? message : `model: ${model}`;
    case "authentication":
      if (sourceType !== undefined) return message;
      return code === "invalid_api_key" ? "invalid x-api-key" : "x-api-key header is required";
    case "overloaded":
      return sourceType === undefined ? "Overloaded" : message;
    case "internal":
      return message === internalMessage ? "Internal server error" : message;
    case "invalid-request":
      if (message === malformedMessage) return malformedWords(failure);
      // Anthropic's messages begin with the path; those of engines name it in `param` only.
      return typeof param === "string" && sourceType === undefined && !message.includes(param)
        ? `${dotted(param)}: ${message}`
        : message;
    default:
      return message;
  }
}

/** The words of Anthropic's JSON reader, orjson. Source: anthropics/claude-code#1832, whose text had half of a surrogate pair. */
function malformedWords({ jsonMistake: mistake }: GenerationFailure): string {
  if (!mistake) return "The request body is not valid JSON.";
  const { line, column, char, isEnd } = mistake;
  const words = isEnd ? "unexpected end of data" : "unexpected character";
  return `The request body is not valid JSON: ${words}: line ${line} column ${column} (char ${char})`;
}

/** Anthropic writes `messages.0.content.1` where OpenAI writes `messages[0].content[1]`. */
function dotted(path: string): string {
  return path.replace(/\[(\d+)\]/g, ".$1");
}

const internalMessage = internalError(undefined).message;
const malformedMessage = malformedJson().message;
