import type { GenerationFailure } from "../generation/event.ts";
import type { Profile } from "./profile.ts";
import type { ErrorAnswer } from "./voice.ts";

/**
 * A failure as OpenAI's error object. Profile `lean` writes it compact; `openai` as one of the two serializers that answer at
 * api.openai.com (wire.md section 9): the gateway in front (authentication, unknown models, rate limits) with four spaces, a final
 * line feed and HTML-safe escapes, the application behind it with two spaces and neither.
 */
export function writeErrorBody(failure: GenerationFailure, profile: Profile): ErrorAnswer {
  const value = { error: errorObject(failure) };
  const status = failure.status;
  if (profile.name === "lean") return { status, contentType: "application/json", body: JSON.stringify(value) };
  if (isGatewayFailure(failure)) {
    const body = `${htmlSafe(JSON.stringify(value, null, 4))}\n`;
    return { status, contentType: "application/json; charset=utf-8", body };
  }
  return { status, contentType: "application/json", body: JSON.stringify(value, null, 2) };
}

/** OpenAI's error object, its members in OpenAI's order. The same object stands in a stream that fails (`data: {"error":…}`). */
export function errorObject(failure: GenerationFailure): {
  message: string;
  type: string;
  param: string | null;
  code: string | null;
} {
  const { message, param = null, code = null } = failure;
  return { message, type: errorType(failure), param, code };
}

/** The source's own word, else OpenAI's for such a failure. */
function errorType({ kind, status, sourceType }: GenerationFailure): string {
  if (sourceType !== undefined) return sourceType;
  if (kind === "overloaded" && status === 429) return "requests";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/** Whether OpenAI refuses it before its application sees the request. */
function isGatewayFailure({ status, param }: GenerationFailure): boolean {
  return status === 401 || status === 403 || status === 429 || (status === 404 && (param ?? null) === null);
}

/** Go's default JSON escapes beyond those that JSON itself needs. */
function htmlSafe(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
