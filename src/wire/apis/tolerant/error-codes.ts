import type { FailureKind } from "../../core/events.ts";

/** What the code or the type of an error says. */
interface ErrorCode {
  /** The status of the error, for a source that sends none: in a stream, or in a response that failed. */
  readonly status: number;
  /** Absent: the one of the status. */
  readonly kind?: FailureKind;
  /** The same request fails again until the account is paid for, or the quota is renewed. */
  readonly isFinal?: true;
}

const refused: ErrorCode = { status: 400 };
const limited: ErrorCode = { status: 429 };
const spent: ErrorCode = { status: 429, isFinal: true };
const overloaded: ErrorCode = { status: 503, kind: "overloaded" };
const tooLong: ErrorCode = { status: 400, kind: "context-overflow" };

/**
 * Codes and types of errors. Sources: OpenAI's OpenAPI document of 2026-08-21, `ResponseErrorCode`, and
 * https://platform.openai.com/docs/guides/error-codes; openai/codex, codex-rs/codex-api/src/sse/responses.rs (`server_is_overloaded`,
 * `slow_down`, `usage_limit_reached`, `usage_not_included`); https://platform.claude.com/docs/en/api/errors; llama.cpp
 * (`exceed_context_size_error`); recordings of 2023 to 2026.
 */
const codes: ReadonlyMap<string, ErrorCode> = new Map([
  ["invalid_api_key", { status: 401 }],
  ["account_deactivated", { status: 401 }],
  ["authentication_error", { status: 401 }],
  ["unsupported_country_region_territory", { status: 403 }],
  ["permission_error", { status: 403 }],
  ["model_not_found", { status: 404 }],
  ["not_found_error", { status: 404 }],
  ["request_too_large", { status: 413 }],
  ["rate_limit_exceeded", limited],
  ["rate_limit_error", limited],
  ["tokens", limited],
  ["requests", limited],
  ["insufficient_quota", spent],
  ["credit_balance_exhausted", spent],
  ["billing_hard_limit_reached", spent],
  ["billing_not_active", spent],
  ["usage_limit_reached", spent],
  ["usage_not_included", spent],
  ["billing_error", { status: 402, isFinal: true }],
  ["server_is_overloaded", overloaded],
  ["slow_down", overloaded],
  ["overloaded_error", overloaded],
  ["api_error", { status: 500 }],
  ["timeout_error", { status: 504 }],
  ["vector_store_timeout", { status: 504 }],
  ["context_length_exceeded", tooLong],
  ["exceed_context_size_error", tooLong],
  ...[
    "invalid_request_error",
    "invalid_prompt",
    "data_residency_mismatch",
    "bio_policy",
    "cyber_policy",
    "misalignment_policy_violation",
    "content_policy_violation",
    "content_filter",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
  ].map((name) => [name, refused] as const),
]);

/** What is known of an error by its code, else by its type, which is less specific; undefined: both are unknown. */
export function knownError(code: string | null, type: string | null): ErrorCode | undefined {
  return codes.get(code ?? "") ?? codes.get(type ?? "");
}

/** In characters. A source's message may be long. */
const maxMessage = 4000;

const wait =
  /\b(?:try again|retry) (?:in|after) (?:(?<hours>\d{1,4})h)?(?:(?<minutes>\d{1,4})m(?!s))?(?:(?<number>\d{1,6}(?:\.\d{1,6})?) ?(?<unit>ms|s))?/i;

/**
 * The wait that the message of a rate limit names, in seconds: `try again in 7s`, `6m12.5s`, `20ms`, `retry after 10 seconds`; undefined:
 * none. Codex reads the same words. Sources: OpenAI, Groq and Azure in issue threads.
 */
export function waitInMessage(message: string): number | undefined {
  const { hours = "0", minutes = "0", number = "0", unit } = wait.exec(message.slice(0, maxMessage))?.groups ?? {};
  const seconds =
    Number(hours) * 3600 + Number(minutes) * 60 + Number(number) / (unit?.toLowerCase() === "ms" ? 1000 : 1);
  return seconds > 0 ? seconds : undefined;
}
