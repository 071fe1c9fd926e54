import type { FailureKind, GenerationFailure } from "../../core/events.ts";
import { kindOfStatus } from "../../core/failure.ts";
import { isObject, scalarText } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";
import { readLengthRefusal } from "./length-refusals.ts";
import type { LengthRefusal } from "./length-refusals.ts";

/** OpenAI's error types, and the statuses that go with them when a source tells no status. */
const statusOfType: ReadonlyMap<string, number> = new Map(
  Object.entries({
    invalid_request_error: 400,
    authentication_error: 401,
    insufficient_quota: 429,
    permission_error: 403,
    not_found_error: 404,
    rate_limit_error: 429,
    rate_limit_exceeded: 429,
    request_too_large: 413,
    api_error: 500,
    timeout_error: 504,
    overloaded_error: 503,
    tokens: 429,
    requests: 429,
  }),
);

/**
 * The failure that a parsed body tells, or null when it tells none. Takes `{error: {…}}`, `{error: "…"}`, vLLM's `{object: "error",
 * message, …}`, `{type: "error", error: {…}}`, FastAPI's `{detail: …}`, Gemini's list of one, and a bare `{message, code}`.
 * `status`: that of the response, when it was not 200.
 */
export function readFailure(body: unknown, status?: number): GenerationFailure | null {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  if (!isObject(first)) return null;
  const error = first["error"];
  if (isObject(error)) return failureFrom(error, status);
  if (typeof error === "string" && error !== "")
    return failureFrom({ ...first, message: text(first["message"]) ?? error }, status);
  if (first["choices"] !== undefined) return null;
  if (first["object"] === "error" || first["type"] === "error") return failureFrom(first, status);
  const detail = first["detail"];
  if (detail !== undefined && detail !== null) return failureFrom({ message: detailText(detail) }, status);
  if (text(first["message"]) !== null && first["object"] === undefined) return failureFrom(first, status);
  return null;
}

/** A failure in our words: the upstream's answer is none. */
export function badAnswer(message: string, cause?: unknown): GenerationFailure {
  const failure: GenerationFailure = { kind: "bad-answer", message, status: 502, param: null, code: null };
  return cause === undefined ? failure : { ...failure, cause };
}

/** An agent that is told of calls and gets none would wait, or ask for ever. */
export function callsWithoutCall(): GenerationFailure {
  return badAnswer('The upstream said finish_reason "tool_calls" but sent no tool call.');
}

/** The failure that a body tells which is not JSON: a proxy's page, plain words, nothing. */
export function failureOfText(body: string, status?: number): GenerationFailure {
  const words = plainWords(body);
  const known = failureStatus(status);
  return {
    kind: kindOfStatus(known),
    message: words === "" ? `The upstream failed${status === undefined ? "" : ` with status ${status}`}.` : words,
    status: known,
    sourceType: typeOfStatus(known),
    param: null,
    code: null,
  };
}

function failureFrom(error: JsonObject, responseStatus: number | undefined): GenerationFailure {
  const told = [error["status"], error["code"], error["status_code"]]
    .map((one) => Number(scalarText(one)))
    .find((n) => n >= 400 && n < 600);
  const ownType = text(error["type"]);
  const type = ownType !== null && /^[a-z_]+$/.test(ownType) && ownType !== "error" ? ownType : null;
  const status = failureStatus(responseStatus ?? told ?? (type === null ? undefined : statusOfType.get(type)));
  const code = text(error["code"]);
  const message = messageOf(error);
  const ownCode = code !== null && !/^\d+$/.test(code) ? code : null;
  const named = kinds.get(ownCode ?? "") ?? kinds.get(type ?? "");
  const failure: GenerationFailure = {
    kind: named ?? kindOfStatus(status),
    message: message === null ? "The upstream reported an error without a message." : shown(message, longestMessage),
    status,
    sourceType: type ?? typeOfStatus(status),
    param: shownOrNull(error["param"]),
    code: ownCode === null ? null : shown(ownCode, longestName),
    cause: boundedCause(error),
  };
  // A rate limit may be on tokens, too.
  if (status === 401 || status === 403 || status === 429) return failure;
  const refusal = lengthRefusal(error, message) ?? (named === "context-overflow" ? { kind: "prompt" as const } : null);
  return refusal ? refusedLength(failure, refusal) : failure;
}

/** What the members of an error say about lengths. Xiaomi says it in `param` (AQBot-Desktop/AQBot#93). */
function lengthRefusal(error: JsonObject, message: string | null): LengthRefusal | null {
  // llama.cpp has members for the numbers (ggml-org/llama.cpp#15780).
  const { n_prompt_tokens: asked, n_ctx: most, param } = error;
  if (typeof asked === "number" && typeof most === "number") return { kind: "prompt", tokens: { asked, most } };
  return readLengthRefusal(message ?? "") ?? readLengthRefusal(text(param) ?? "");
}

/** The failure of a request whose prompt or limit is too long: the client's fault, also where the server's status is 5xx. */
function refusedLength(failure: GenerationFailure, refusal: LengthRefusal): GenerationFailure {
  const status = failure.status < 500 ? failure.status : 400;
  const own = { ...failure, status, ...(status !== failure.status && { sourceType: typeOfStatus(status) }) };
  if (refusal.kind === "prompt") {
    const { tokens } = refusal;
    // OpenAI's code, by which its clients know that they must compact their history.
    return { ...own, kind: "context-overflow", ...(tokens && { tokens }), code: "context_length_exceeded" };
  }
  const { kind: _, ...answerLimit } = refusal;
  // OpenAI has the code of a long prompt for this, too; a client would compact a history that fits.
  const code = own.code === "context_length_exceeded" ? null : (own.code ?? null);
  return { ...own, kind: "invalid-request", answerLimit, code };
}

/** The words of an error: also those in Mistral's list of details, and those of the server that OpenRouter asked. */
function messageOf(error: JsonObject): string | null {
  const { message, metadata } = error;
  if (isObject(message) && message["detail"] !== undefined) return detailText(message["detail"]);
  const raw = isObject(metadata) ? text(metadata["raw"]) : null;
  if (raw !== null && message === "Provider returned error") return rawMessage(raw);
  return text(message) ?? text(error["detail"]) ?? text(error["msg"]);
}

/** The message of an error that is given as a text: as JSON, or as the message itself. */
function rawMessage(raw: string): string {
  try {
    return readFailure(JSON.parse(raw))?.message ?? raw;
  } catch {
    return raw;
  }
}

/** A source may send a hundred megabytes as its error, or what steers a terminal. In characters. */
const longestMessage = 4000;
const longestName = 200;

/** Without control characters, and not longer than `most`. */
function shown(words: string, most: number): string {
  // oxlint-disable-next-line no-control-regex -- the pattern looks for control characters
  const printable = words.slice(0, most + 1).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "");
  return words.length > most ? `${printable.slice(0, most)}…` : printable;
}

function shownOrNull(value: unknown): string | null {
  const words = text(value);
  return words === null ? null : shown(words, longestName);
}

function boundedCause(error: JsonObject): unknown {
  const json = JSON.stringify(error);
  return json.length > longestMessage ? `${json.slice(0, longestMessage)}…` : error;
}

/** What codes and types say beyond the status. */
const kinds: ReadonlyMap<string, FailureKind> = new Map(
  Object.entries<FailureKind>({
    context_length_exceeded: "context-overflow",
    exceed_context_size_error: "context-overflow",
    overloaded_error: "overloaded",
  }),
);

/** A failure's status: the source's own where it is one, else 502 (the upstream answered badly). */
function failureStatus(status: number | undefined): number {
  return status !== undefined && status >= 400 && status < 600 ? status : 502;
}

function typeOfStatus(status: number): string {
  if (status === 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

/** FastAPI's `detail`: words, or a list of `{loc, msg}`. */
function detailText(detail: unknown): string {
  if (typeof detail === "string") return detail;
  if (Array.isArray(detail)) {
    const messages = detail.filter(isObject).flatMap((entry) => {
      const message = text(entry["msg"]);
      const place = Array.isArray(entry["loc"]) ? entry["loc"].map(scalarText).join(".") : "";
      return message === null ? [] : [place === "" ? message : `${place}: ${message}`];
    });
    if (messages.length > 0) return messages.join("; ");
  }
  return JSON.stringify(detail);
}

/** At most 300 characters of what a person would read: a page's title, or text without tags. */
function plainWords(body: string): string {
  const start = body.slice(0, 20_000);
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(start)?.[1];
  const words = title ?? start.replace(/<(script|style)\b[\s\S]*?<\/\1>|<[^>]*>/gi, " ");
  return shown(words.replace(/\s+/g, " ").trim().slice(0, 300), 300);
}
