import type { GenerationFailure } from "../../core/events.ts";

/**
 * The `code` of a response that failed. Clients act on three of them: Codex does not try again what says `context_length_exceeded` or
 * `insufficient_quota`, and waits after `rate_limit_exceeded`. Source: the specification's ResponseErrorCode; Codex CLI 0.169.
 */
export function failureCode({ kind, code }: GenerationFailure): string {
  if (typeof code === "string" && code !== "") return code;
  switch (kind) {
    case "context-overflow":
      return "context_length_exceeded";
    case "rate-limited":
    case "overloaded":
      return "rate_limit_exceeded";
    case "invalid-request":
      return "invalid_prompt";
    default:
      return "server_error";
  }
}
