import type * as z from "zod";
import type { GenerationFailure } from "../../core/events.ts";
import { internalError, malformedJson } from "../failures.ts";
import { inWireOrder } from "../members.ts";
import type { Profile } from "../profile.ts";
import { errorCodes, errorResponse, errorStatuses, imageError } from "./schema.ts";

/** A failure in Anthropic's words. Source: https://platform.claude.com/docs/en/api/errors, and recordings of 2024 to 2026. */
export interface AnthropicError {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

export function anthropicError(failure: GenerationFailure): AnthropicError {
  const { status, type } = statusAndType(failure);
  const { sourceType = "" } = failure;
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
 * coding, and its words for an image that cannot be used. Source: @anthropic-ai/sdk 1.12.0, `RequestBodyEncodingUnsupportedError`.
 */
export function asMessagesFailure(failure: GenerationFailure, { judgesAsVendor }: Profile): GenerationFailure {
  const { image, param, code, status } = failure;
  if (code === "invalid_content_encoding") return { ...failure, code: "request_body_encoding_invalid" };
  if (code === "unsupported_content_encoding")
    return { ...failure, code: "request_body_encoding_unsupported", status: judgesAsVendor ? 400 : status };
  if (!image || !judgesAsVendor) return failure;
  return { ...failure, ...imageError(image, dotted(param ?? "messages")), param: null };
}

/** Returns the JSON of an error's body, which is also the data of an `error` event. `requestId` is `null` if none is known. */
export function errorJson(failure: GenerationFailure, requestId: string | null): string {
  const { type, message } = anthropicError(failure);
  const details = detailsOf(failure);
  const object: z.input<typeof errorResponse> = {
    type: "error",
    error: {
      type,
      message,
      ...(details && { details }),
    },
    request_id: requestId,
  };
  return JSON.stringify(inWireOrder(errorResponse, object));
}

/** Returns `details` of an error with one of Anthropic's codes: an upstream's own, which may have further members, or the code alone. */
function detailsOf({ code, details }: GenerationFailure): z.input<typeof errorResponse>["error"]["details"] {
  return typeof code === "string" && errorCodes.has(code) ? { ...details, error_code: code } : undefined;
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
      if (message === malformedMessage) return "The request body is not valid JSON.";
      // Anthropic's messages begin with the path; those of engines name it in `param` only.
      return typeof param === "string" && sourceType === undefined && !message.includes(param)
        ? `${dotted(param)}: ${message}`
        : message;
    default:
      return message;
  }
}

/** Anthropic writes `messages.0.content.1` where OpenAI writes `messages[0].content[1]`. */
function dotted(path: string): string {
  return path.replace(/\[(\d+)\]/g, ".$1");
}

const internalMessage = internalError(undefined).message;
const malformedMessage = malformedJson().message;
