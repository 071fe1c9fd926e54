import { kindOfStatus } from "../../generation/failure.ts";
import type { GenerationEnd, GenerationFailure } from "../../generation/event.ts";

type FailedEnd = Extract<GenerationEnd, { readonly failure: GenerationFailure }>;

/** What went wrong between here and the upstream, before any answer: 503 when nobody is there, 504 when it takes too long, else 502. */
export function transportFailure(error: Error, upstream: string): GenerationFailure {
  const code = codeOf(error);
  const timedOut = code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEDOUT";
  const absent = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/.test(code);
  const [status, what] = isOutOfFiles(error)
    ? [503, "cannot be reached: this process may open no more files"]
    : timedOut
      ? [504, "did not accept the connection in time"]
      : absent
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

export function answerTooLong(limit: number): FailedEnd {
  const message = `The upstream's answer is longer than ${limit} bytes.`;
  return { kind: "upstream-error", failure: { kind: "bad-answer", message, status: 502, param: null, code: null } };
}

/** The system's code, which Node hides in `cause` or, with several addresses, in `errors`. */
function codeOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return "";
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown };
  if (typeof code === "string") return code;
  const inner = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  return inner === undefined ? "" : codeOf(inner);
}
