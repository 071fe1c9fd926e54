import { isObject } from "../core/json.ts";
import { bodyOf } from "./captured-body.ts";
import { readCaptures } from "./read-captures.ts";

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

/** The answers of a recording. Throws an Error of one sentence that begins with `name`. */
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
