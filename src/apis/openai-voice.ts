import { writeErrorBody } from "./error-body.ts";
import { openaiLimitHeaders } from "./rate-limits.ts";
import type { HeaderReader, ApiErrorFormat } from "./voice.ts";

/** OpenAI's keys (a Bearer token, a basic password from browsers, or `x-api-key` from some gateways), headers and error object. */
export const openaiErrorFormat: ApiErrorFormat = {
  keyIn,
  answerHeaders: (requestId, processingMs) => ({
    "x-request-id": requestId,
    "openai-processing-ms": String(processingMs),
    "openai-version": "2020-10-01",
  }),
  limitHeaders: openaiLimitHeaders,
  writeFailure: writeErrorBody,
};

/** `Bearer KEY`, or HTTP's basic scheme with the key as the password, as OpenAI's own 401 offers for browsers; else `x-api-key`. */
export function keyIn(header: HeaderReader): string {
  return authorizedKey(header) || (header("x-api-key") ?? "").trim();
}

function authorizedKey(header: HeaderReader): string {
  const [scheme = "", value = ""] = (header("authorization") ?? "").trim().split(/\s+/, 2);
  if (/^bearer$/i.test(scheme)) return value;
  if (!/^basic$/i.test(scheme)) return "";
  try {
    const pair = atob(value);
    return pair.slice(pair.indexOf(":") + 1);
  } catch {
    return "";
  }
}

/** The authorization header for a server of OpenAI's dialect. */
export function bearer(key: string | undefined): Readonly<Record<string, string>> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` };
}
