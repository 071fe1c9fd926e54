import type { FailureKind, GenerationFailure, ImageProblem } from "./events.ts";

/**
 * A failure that becomes an `end` event or an error body. Never thrown across `Engine.generate`.
 *
 * @example
 * import { FailureError, readChatStream, writeChatChunks } from "truewire";
 *
 * try {
 *   for await (const chunk of writeChatChunks(readChatStream("Internal error"), { model: "m" })) console.log(chunk.object);
 * } catch (error) {
 *   if (error instanceof FailureError) console.log(error.failure.status, error.failure.kind);
 * }
 * // → chat.completion.chunk
 * // → 502 bad-answer
 */
export class FailureError extends Error {
  readonly failure: GenerationFailure;

  constructor(failure: GenerationFailure) {
    super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.name = "FailureError";
    this.failure = failure;
  }
}

/** The header, of an answer to a client, with the id that the source gave to the request. */
export const upstreamRequestId = "x-truewire-upstream-request-id";

/** An invalid request: 400. */
export function invalidRequest(message: string, param: string | null = null, code: string | null = null): FailureError {
  return new FailureError({ kind: "invalid-request", message, status: 400, param, code });
}

/** An image that cannot be used: 400. Each API has its own code for `image`, and in profile `exact` its own words. */
export function invalidImage(image: ImageProblem, message: string, param: string | null): FailureError {
  return new FailureError({ kind: "invalid-request", message, status: 400, param, image });
}

/**
 * The text of a failure for the log, without what a client, a source or a program wrote: the message of a failure of this server (5xx),
 * else the code or the kind. Refusals (4xx) quote the request.
 */
export function loggedFailure({ kind, status, message, code, isForeign }: GenerationFailure): string {
  if (isForeign) return kind;
  return status >= 500 ? message : (code ?? kind);
}

/** An error for the log: its name, the system's code and its stack. Not its message, which may quote a conversation or a key. */
export function loggedError(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `a thrown ${typeof error}`;
    const { name, message, stack = "" } = error;
    const head = message === "" ? name : `${name}: ${message}`;
    const code = systemCode(error) ?? systemCode(error.cause);
    const frames = stack.startsWith(`${head}\n`) ? stack.slice(head.length) : "";
    return (/^[A-Z]\w{0,40}Error$/.test(name) ? name : "Error") + (code === undefined ? "" : ` (${code})`) + frames;
  } catch {
    // A getter of the error has thrown.
    return "an error";
  }
}

/** Node's and undici's codes of errors, such as `ECONNRESET`. */
function systemCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" && /^(?:E[A-Z]{3,14}|(?:ERR|UND_ERR)_[A-Z_]{3,40})$/.test(code) ? code : undefined;
}

/** The kind of a failure, by its HTTP status. */
export function kindOfStatus(status: number): FailureKind {
  return kinds[status] ?? (status < 500 ? "invalid-request" : "internal");
}

const kinds: Readonly<Record<number, FailureKind>> = {
  401: "authentication",
  403: "permission",
  404: "not-found",
  408: "timeout",
  413: "too-large",
  429: "rate-limited",
  502: "bad-answer",
  503: "unavailable",
  504: "timeout",
  529: "overloaded",
};

const [maxShown, maxLength] = [20, 300];

/** Limits the number and the length of warnings for the log: a client may cause thousands of warnings. */
export function shownWarnings(warnings: readonly string[]): string[] {
  const shown = warnings
    .slice(0, maxShown)
    .map((text) => (text.length > maxLength ? `${text.slice(0, maxLength)}...` : text));
  return warnings.length > maxShown ? [...shown, `and ${warnings.length - maxShown} more`] : shown;
}

/** The kinds of failure after which another model may be asked. `connection`: no answer at all; `server-error`: one with a status of 5xx. */
export const fallbackReasons = [
  "connection",
  "timeout",
  "server-error",
  "rate-limit",
  "not-found",
  "context-length",
  "content-filter",
] as const;
export type FallbackReason = (typeof fallbackReasons)[number];
