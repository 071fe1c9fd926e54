import { kindOfStatus } from "../../core/failure.ts";
import type { GenerationEnd, GenerationFailure } from "../../core/events.ts";

type FailedEnd = Extract<GenerationEnd, { readonly failure: GenerationFailure }>;

/** What went wrong between here and the upstream, before any answer: 503 when nobody is there, 504 when it takes too long, else 502. */
export function transportFailure(error: Error, upstream: string): GenerationFailure {
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

/** Node 24 adds to some messages how it could be started instead; that is nothing for a client. */
function withoutNodesHint(message: string): string {
  return message.replace(/; if the root CA is installed locally, .*$/s, "");
}

/** What OpenSSL and Node say of certificates. Source: Node's documentation, "X509 certificate error codes". */
const untrusted =
  /^(?:CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|ERR_TLS_CERT_)/;
const noTls = /^(?:EPROTO|ERR_SSL_|ERR_TLS_)/;

/** Whether a connection that failed so may succeed in a moment: not one that timed out, and not one whose other end is wrong. */
export function isWorthRepeating(error: unknown): boolean {
  const code = codeOf(error);
  return !untrusted.test(code) && !noTls.test(code) && !isConnectTimeout(code);
}

/** Whether a connection failed for a reason that stays: its other end is not trusted, or speaks no TLS. */
export function isMisconfigured(error: unknown): boolean {
  const code = codeOf(error);
  return untrusted.test(code) || noTls.test(code);
}

/** Whether nobody answers there at all, in contrast to a server that answers badly. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error);
  return isAbsent(code) || isConnectTimeout(code) || untrusted.test(code) || noTls.test(code);
}

/** Whether a connection was lost: on one that had been idle, the server may have closed it just as the request went out. */
export function isLost(error: unknown): boolean {
  return /^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET)$/.test(codeOf(error));
}

function isConnectTimeout(code: string): boolean {
  return code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT";
}

function isAbsent(code: string): boolean {
  return /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/.test(code);
}

/** The system refuses connections because of this process, whoever they go to. */
export function isOutOfFiles(error: unknown): boolean {
  return /^(EMFILE|ENFILE)$/.test(codeOf(error));
}

export function silence(upstream: string, seconds: number): FailedEnd {
  const failure: GenerationFailure = {
    kind: "timeout",
    message: `The upstream ${upstream} sent nothing for ${seconds} seconds.`,
    status: 504,
    param: null,
    code: null,
  };
  return { kind: "idle-timeout", failure };
}

/** Something arrived, such as comments, and no event. */
export function withoutEvents(upstream: string, seconds: number): FailedEnd {
  const { kind, failure } = silence(upstream, seconds);
  return {
    kind,
    failure: { ...failure, message: `The upstream ${upstream} sent no event for ${seconds} seconds.` },
  } as FailedEnd;
}

export function answerTooLong(limit: number): FailedEnd {
  const message = `The upstream's answer is longer than ${limit} bytes.`;
  return { kind: "upstream-error", failure: { kind: "bad-answer", message, status: 502, param: null, code: null } };
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
