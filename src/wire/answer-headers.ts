import type { Profile } from "./profile.ts";

/** What the headers of an answer depend on. */
export interface AnswerHead {
  readonly profile: Profile;
  readonly endpoint: "chat" | "completions" | "models";
  /** Whether the body is a stream of events. */
  readonly stream: boolean;
  /** As in the log: `req_…`. */
  readonly requestId: string;
  /** Milliseconds from the request's arrival to the answer's beginning. */
  readonly processingMs: number;
  /** The model that answers, where one does; profile `openai` names it on completions. */
  readonly model?: string;
}

/**
 * The standard headers of a successful answer, lower case, in OpenAI's order (requirement W12; wire.md sections 4 and 8). What
 * belongs to a server rather than to the API (date, connection, CORS, rate limits) is the server's to add. Errors have the content
 * type of `writeErrorBody` and the rest of these.
 */
export function answerHeaders(head: AnswerHead): Record<string, string> {
  const { profile, endpoint, stream, requestId, processingMs, model } = head;
  const cacheControl = stream ? cacheControlOf(profile, endpoint) : undefined;
  return {
    "content-type": contentType(profile, endpoint, stream),
    ...(cacheControl !== undefined && { "cache-control": cacheControl }),
    ...(profile.name === "openai" && endpoint === "completions" && model !== undefined && { "openai-model": model }),
    "openai-processing-ms": String(Math.max(0, Math.round(processingMs))),
    "openai-version": "2020-10-01",
    "x-request-id": requestId,
  };
}

function contentType(profile: Profile, endpoint: AnswerHead["endpoint"], stream: boolean): string {
  if (!stream) return "application/json";
  return profile.name === "openai" && endpoint === "completions"
    ? "text/event-stream"
    : "text/event-stream; charset=utf-8";
}

/** OpenAI sends none with chat streams; without it some proxies hold a stream back, so `lean` has it. */
function cacheControlOf(profile: Profile, endpoint: AnswerHead["endpoint"]): string | undefined {
  if (profile.name === "lean") return "no-cache";
  return endpoint === "completions" ? "no-cache, must-revalidate" : undefined;
}
