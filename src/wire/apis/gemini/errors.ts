import type { GenerationFailure } from "../../core/events.ts";
import { internalError } from "../failures.ts";
import { isObject, type JsonObject } from "../../core/json.ts";
import type { JsonValue } from "../json-text.ts";
import { inWireOrder } from "../members.ts";
import type { Profile } from "../profile.ts";
import { geminiError, geminiStatuses } from "./schema.ts";

/*
 * Google's errors. Sources: https://ai.google.dev/gemini-api/docs/troubleshooting; googleapis/googleapis, google/rpc/error_details.proto; the
 * recordings of errors in crmne/ruby_llm; google-gemini/gemini-cli#4692 (a prompt that is too long).
 */

const type = (name: string): string => `type.googleapis.com/google.rpc.${name}`;

/** The status of a failure in HTTP: Google has 400 for a wrong key, and 403 for a missing one. */
export function errorStatus({ kind, status, code, sourceType }: GenerationFailure): number {
  if (kind === "authentication" && sourceType === undefined) return code === "invalid_api_key" ? 400 : 403;
  if (kind === "overloaded" || kind === "unavailable") return status === 429 ? 429 : 503;
  if (kind === "bad-answer") return 500;
  if (geminiStatuses[status] !== undefined) return status;
  return status < 500 ? (status === 405 || status === 408 ? 404 : 400) : status === 502 ? 500 : 503;
}

/** The object of an error, as a body and as an item of a stream. */
export function errorObject(failure: GenerationFailure, { judgesAsVendor }: Profile): JsonValue {
  const code = errorStatus(failure);
  const message = messageOf(failure, judgesAsVendor);
  const details = detailsOf(failure, message);
  return inWireOrder(geminiError, {
    error: { code, message, status: geminiStatuses[code] ?? "UNKNOWN", ...(details.length > 0 && { details }) },
  }) as JsonValue;
}

function messageOf(failure: GenerationFailure, judgesAsVendor: boolean): string {
  const { kind, message, sourceType, tokens, model, code } = failure;
  if (sourceType !== undefined) return message;
  // Clients look for these words.
  if (kind === "context-overflow" && tokens)
    return `The input token count (${tokens.asked}) exceeds the maximum number of tokens allowed (${tokens.most}).`;
  if (!judgesAsVendor) return message;
  if (kind === "authentication")
    return code === "invalid_api_key"
      ? "API key not valid. Please pass a valid API key."
      : "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.";
  if (code === "model_not_found")
    return `models/${model ?? ""} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.`;
  if (kind === "overloaded") return "The model is overloaded. Please try again later.";
  if (message === internalMessage)
    return "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting";
  return message;
}

const internalMessage = internalError(undefined).failure.message;

function detailsOf(failure: GenerationFailure, message: string): JsonObject[] {
  const { kind, code, sourceType, retryAfterSeconds, details } = failure;
  const list = Array.isArray(details?.["list"]) ? details["list"].filter(isObject) : [];
  if (list.length > 0) return list;
  if (kind === "authentication" && code === "invalid_api_key" && sourceType === undefined)
    return [
      {
        "@type": type("ErrorInfo"),
        reason: "API_KEY_INVALID",
        domain: "googleapis.com",
        metadata: { service: "generativelanguage.googleapis.com" },
      },
      { "@type": type("LocalizedMessage"), locale: "en-US", message },
    ];
  const fieldViolations = details?.["fieldViolations"];
  return [
    ...(Array.isArray(fieldViolations) ? [{ "@type": type("BadRequest"), fieldViolations }] : []),
    ...(retryAfterSeconds === undefined
      ? []
      : [{ "@type": type("RetryInfo"), retryDelay: `${Math.max(1, Math.ceil(retryAfterSeconds))}s` }]),
  ];
}
