import type { GenerationFailure } from "../generation/event.ts";
import type { Profile } from "./profile.ts";

/** An HTTP error answer: what stands beside it in headers (`retry-after`, `x-request-id`) is the server's. */
export interface ErrorBody {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * A failure as OpenAI's error object. Profile `lean` writes it compact; `openai` as one of the two serializers that answer at
 * api.openai.com (wire.md section 9): the gateway in front (authentication, unknown models, rate limits) with four spaces, a final
 * line feed and HTML-safe escapes, the application behind it with two spaces and neither.
 */
export function writeErrorBody(failure: GenerationFailure, profile: Profile): ErrorBody {
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
  const { message, type, param = null, code = null } = failure;
  return { message, type, param, code };
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
