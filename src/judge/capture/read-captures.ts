import { apiOfCapture } from "../../wire/apis/ordered-capture.ts";
import type { CapturedApi } from "../../wire/apis/ordered-capture.ts";
import type { CapturedExchange } from "./captured-exchange.ts";
import { readHar, readTranscript } from "./foreign-captures.ts";
import { readRecording } from "./recording.ts";
import { isObject } from "../../wire/core/json.ts";
import { bodyOf } from "./captured-exchange.ts";

const paths: Readonly<Record<CapturedApi, string>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
};

/**
 * The exchanges of a file: a recording of `truewire record`, a HAR file, a transcript of `curl -v`, or the body of an answer alone
 * (`.sse`, or JSON), which then answers any request to its API. Throws an Error of one sentence that begins with `name`. Pure.
 */
export function readCaptures(text: string, name: string): CapturedExchange[] {
  const start = text.trimStart();
  if (start === "") throw new Error(`${name}: the file is empty`);
  if (start.startsWith('{"truewire":')) {
    return text
      .split("\n")
      .flatMap((line, at) => (line.trim() === "" ? [] : [readRecording(line, `${name}:${at + 1}`)]));
  }
  if (/^[*>] /m.test(text) && /^< HTTP\//m.test(text)) return [readTranscript(text, name)];
  const value = start.startsWith("{") ? parsed(start) : undefined;
  if (value !== undefined && "log" in value) return readHar(value, name);
  return [bodyAlone(text, name, value !== undefined)];
}

/** Undefined where it is no JSON object: a stream whose events are bare JSON, say. */
function parsed(text: string): object | undefined {
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
}

function bodyAlone(text: string, from: string, isJson: boolean): CapturedExchange {
  if (!isJson && !/^(data|event|id|retry|:)/m.test(text) && !text.trimStart().startsWith("{")) {
    throw new Error(
      `${from}: expected a recording of truewire record, a HAR file, a transcript of curl -v, or the body of an answer`,
    );
  }
  const contentType = isJson ? "application/json" : "text/event-stream; charset=utf-8";
  return {
    from,
    request: { method: "POST", path: paths[apiOfCapture(text)] },
    response: { status: 200, headers: [["content-type", contentType]], pieces: [{ ms: 0, text }] },
  };
}

/** An answer of a recording, with what is known around it. */
export interface RecordedAnswer {
  /** Where it was read from, for messages: `session.jsonl:3`. */
  readonly from: string;
  readonly body: string;
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** The request's JSON. */
  readonly request?: Record<string, unknown>;
  readonly status: number;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** false: the connection broke before the answer's end. */
  readonly complete: boolean;
}

/** Whether a text is a recording of `truewire record`. */
export function isRecording(text: string): boolean {
  return text.trimStart().startsWith('{"truewire":');
}

/** Whether a text is a HAR file. */
export function isHar(text: string): boolean {
  const start = text.trimStart();
  return /^\{\s*"log"\s*:/.test(start.slice(0, 1000)) && parsed(start) !== undefined;
}

/** The answers of a recording, or of a HAR file. Throws an Error of one sentence that begins with `name`. */
export function recordedAnswers(text: string, name: string): readonly RecordedAnswer[] {
  return readCaptures(text, name).map(({ from, request: { method, path, body }, response }) => {
    const asked = jsonOf(body ?? "");
    return {
      from,
      body: bodyOf(response),
      method,
      path: path.replace(/\?.*/s, ""),
      ...(isObject(asked) && { request: { ...asked } }),
      status: response.status,
      headers: Object.fromEntries(response.headers.map(([field, value]) => [field.toLowerCase(), value])),
      complete: response.brokeOff !== true,
    };
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
