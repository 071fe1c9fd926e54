import type { GenerationFailure } from "../core/events.ts";
import { imageErrorCodes, imageErrorWords } from "./chat/schema.ts";
import type { Profile } from "./profile.ts";

/** An HTTP error answer. The server adds `retry-after` and the failure's own headers. */
export interface ErrorAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface ErrorForm {
  readonly contentType: string;
  readonly write: (value: object) => string;
}

/**
 * How errors are written: those of the gateway in front of an application (authentication, unknown models, rate limits), and all
 * others. At api.openai.com these are two serializers (recordings of 2025 and 2026): the first indents by four spaces, ends with a
 * line feed and escapes what HTML could read, the second indents by two and does neither.
 */
const forms: Readonly<Record<Profile["name"], { readonly gateway: ErrorForm; readonly application: ErrorForm }>> = {
  lean: {
    gateway: { contentType: "application/json", write: (value) => JSON.stringify(value) },
    application: { contentType: "application/json", write: (value) => JSON.stringify(value) },
  },
  exact: {
    gateway: {
      contentType: "application/json; charset=utf-8",
      write: (value) => `${htmlSafe(JSON.stringify(value, null, 4))}\n`,
    },
    application: { contentType: "application/json", write: (value) => JSON.stringify(value, null, 2) },
  },
};

/** A failure as OpenAI's error object. */
export function writeErrorBody(failure: GenerationFailure, { name, judgesAsVendor }: Profile): ErrorAnswer {
  const { contentType, write } = forms[name][isGatewayFailure(failure) ? "gateway" : "application"];
  const own = judgesAsVendor ? inVendorsWords(failure) : failure;
  return { status: commonStatus(own), contentType, body: write({ error: errorObject(own) }) };
}

/** The status of a failure in APIs other than Anthropic's, which alone has 529. */
export function commonStatus({ status }: GenerationFailure): number {
  return status === 529 ? 503 : status;
}

/** OpenAI's words for an image that cannot be used, and of 2026 for a prompt that is too long; those of an upstream are kept. */
function inVendorsWords(failure: GenerationFailure): GenerationFailure {
  const { kind, tokens, sourceType, param } = failure;
  if (kind === "context-overflow" && tokens && sourceType === undefined && param !== "input") {
    const { asked, most } = tokens;
    const [message, of] =
      param === "prompt"
        ? [
            `This model's maximum context length is ${most} tokens. However, your prompt resulted in ${asked} tokens. Please reduce the length of the prompt.`,
            "prompt",
          ]
        : [
            `Input tokens exceed the configured limit of ${most} tokens. Your messages resulted in ${asked} tokens. Please reduce the length of the messages.`,
            "messages",
          ];
    return { ...failure, message, param: of, code: "context_length_exceeded" };
  }
  const message = failure.image && imageErrorWords(failure.image);
  return message === undefined ? failure : { ...failure, message, param: null };
}

/** OpenAI's error object, its members in OpenAI's order. A stream that fails contains the same object (`data: {"error":…}`). */
export function errorObject(failure: GenerationFailure): {
  message: string;
  type: string;
  param: string | null;
  code: string | null;
} {
  const { message, param = null, code = null, image } = failure;
  return { message, type: errorType(failure), param, code: code ?? (image ? imageErrorCodes[image.why] : null) };
}

/** The source's type if it is one of OpenAI's, else OpenAI's type for the failure. */
function errorType({ kind, status, sourceType }: GenerationFailure): string {
  if (sourceType !== undefined && types.has(sourceType)) return sourceType;
  if (kind === "overloaded" && status === 429) return "requests";
  return status < 500 ? "invalid_request_error" : "server_error";
}

/**
 * The types of OpenAI's errors: those of the recordings, and those that its guides and client libraries name. Servers have others:
 * `api_error` (Ollama), `exceed_context_size_error` (llama.cpp), Anthropic's `overloaded_error`.
 */
const types: ReadonlySet<string> = new Set([
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "rate_limit_error",
  "rate_limit_exceeded",
  "insufficient_quota",
  "requests",
  "tokens",
  "server_error",
]);

/** Whether OpenAI's gateway sends the error, not its application. */
function isGatewayFailure({ status, param }: GenerationFailure): boolean {
  return status === 401 || status === 403 || status === 429 || (status === 404 && (param ?? null) === null);
}

/** Adds the escapes of Go's JSON encoder. */
function htmlSafe(json: string): string {
  return json.replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
