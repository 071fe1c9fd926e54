import type { AnswerHeaders } from "../../wire/core/inspection.ts";
import type { GenerationEnd, GenerationFailure } from "../../wire/core/events.ts";
import { FailureError, kindOfStatus, upstreamRequestId } from "../../wire/core/failure.ts";
import { badAnswer, failureOfText, readFailure } from "../../wire/apis/tolerant/read-failure.ts";
import type { RepairLog } from "../../wire/apis/tolerant/repairs.ts";
import { parseTolerantly } from "../../wire/apis/tolerant/read-response.ts";
import type { ReceivedHeaders } from "./transport.ts";

export type FailedEnd = Extract<GenerationEnd, { readonly failure: GenerationFailure }>;

/**
 * The failure of a request that got no answer: 503 if the upstream cannot be reached, 504 if the connection timed out, else 502.
 * `upstream`: its name or URL, for the message.
 */
export function transportFailure(error: Error, upstream: string): GenerationFailure {
  // The request was not sent.
  if (error instanceof FailureError) return error.failure;
  const code = codeOf(error);
  const [status, what] = isOutOfFiles(error)
    ? [503, "cannot be reached: this process may open no more files"]
    : untrusted.test(code)
      ? [502, `has a certificate that is not trusted: ${withoutNodesHint(innermost(error).message)}`]
      : noTls.test(code)
        ? [502, "does not answer in TLS as expected"]
        : isConnectTimeout(code)
          ? [504, "did not accept the connection in time"]
          : isAbsent(code)
            ? [503, "cannot be reached"]
            : [502, "closed the connection without an answer"];
  return {
    kind: kindOfStatus(status),
    message: `The upstream ${upstream} ${what}${code === "" ? "" : ` (${code})`}.`,
    status,
    param: null,
    code: null,
    cause: error,
  };
}

/** Node 24 appends a hint on how to start Node to some messages, which does not concern a client. */
function withoutNodesHint(message: string): string {
  return message.replace(/; if the root CA is installed locally, .*$/s, "");
}

/** Error codes of certificates. Source: Node's documentation, "X509 certificate error codes". */
const untrusted =
  /^(?:CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;
const noTls = /^(?:EPROTO|ERR_SSL_|ERR_TLS_)/;

/** Whether a connection that failed may succeed if it is tried again immediately: not after a time-out or an error of TLS. */
export function isWorthRepeating(error: unknown): boolean {
  return !isMisconfigured(error) && !isConnectTimeout(codeOf(error));
}

/** Whether a connection failed for a permanent reason: the other end is not trusted, or does not use TLS. */
export function isMisconfigured(error: unknown): boolean {
  const code = codeOf(error);
  return untrusted.test(code) || noTls.test(code);
}

/** Whether there was no connection at all, in contrast to a server that answers with an error. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error);
  return isAbsent(code) || isConnectTimeout(code) || isMisconfigured(error);
}

/** Whether a connection was lost: the server may have closed an idle connection just as the request was sent. */
export function isLost(error: unknown): boolean {
  return /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(codeOf(error));
}

function isConnectTimeout(code: string): boolean {
  return code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT";
}

function isAbsent(code: string): boolean {
  return /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/.test(code);
}

/** Whether the system refused the connection because of this process's or its own limit on open files. */
export function isOutOfFiles(error: unknown): boolean {
  return /^(EMFILE|ENFILE)$/.test(codeOf(error));
}

function codeOf(error: unknown): string {
  const { code } = innermost(error) as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/** The error with the system's code, which Node hides in `cause` or, with several addresses, in `errors`. */
function innermost(error: unknown): Error {
  if (typeof error !== "object" || error === null) return new Error(String(error));
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  const inner = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  return typeof code === "string" || inner === undefined ? (error as Error) : innermost(inner);
}

/** The failure in an answer whose status is not 200. */
export function failureOfAnswer(
  status: number,
  headers: ReceivedHeaders,
  body: string,
  repairs: RepairLog,
): GenerationFailure {
  const retryAfter = retryAfterSeconds(headers, Date.now());
  const failure = readFailure(parseTolerantly(body, repairs), status) ?? failureOfText(body, status);
  return {
    ...failure,
    ...(retryAfter !== undefined && { retryAfterSeconds: retryAfter }),
    headers: { ...passedHeaders(headers), ...failure.headers },
  };
}

/** `what` was received: "no event" if there was something else, such as comments. */
export function silence(upstream: string, ms: number, what: "nothing" | "no event"): FailedEnd {
  const message = `The upstream ${upstream} sent ${what} for ${ms / 1000} seconds.`;
  return { kind: "idle-timeout", failure: { kind: "timeout", message, status: 504, param: null, code: null } };
}

export function answerTooLong(limit: number): FailedEnd {
  return { kind: "upstream-error", failure: badAnswer(`The upstream's answer is longer than ${limit} bytes.`) };
}

/**
 * The upstream's headers that are passed on to a client: its rate limits, whose account was asked, and its id of the request, which its
 * support asks for, under another name: `x-request-id` is this server's.
 */
export function passedHeaders(headers: AnswerHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (passes.test(name) && typeof value === "string") passed[name] = value;
  }
  const id = headers["request-id"] ?? headers["x-request-id"];
  if (typeof id === "string" && /^[!-~]{1,200}$/.test(id)) passed[upstreamRequestId] = id;
  return passed;
}

const passes = /^(?:(?:x-|anthropic-)?ratelimit-|openai-(?:organization|project)$)/;

/** In seconds. With a longer time a client would never retry. */
const maxRetryAfter = 24 * 60 * 60;

/**
 * Seconds until a retry makes sense, from `retry-after-ms`, or `retry-after` as seconds or as a date; at most a day. `undefined` if the
 * upstream does not say. `now`: Unix time in milliseconds.
 */
export function retryAfterSeconds(headers: ReceivedHeaders, now: number): number | undefined {
  const seconds = receivedSeconds(headers, now);
  return seconds === undefined ? undefined : Math.min(maxRetryAfter, Math.max(0, seconds));
}

function receivedSeconds(headers: ReceivedHeaders, now: number): number | undefined {
  const ms = Number(headers["retry-after-ms"]);
  if (headers["retry-after-ms"] !== undefined && ms >= 0) return ms / 1000;
  const value = headers["retry-after"];
  if (typeof value !== "string") return undefined;
  const seconds = Number(value);
  if (!Number.isNaN(seconds)) return seconds;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : (date - now) / 1000;
}
