import type { GenerationEvent } from "../../core/events.ts";
import type { EventReader } from "../source-port.ts";
import { failureOfText } from "./read-failure.ts";
import type { RepairLog } from "./repairs.ts";

/**
 * Reads the whole body of a response that should be JSON, with a reader of its endpoint. Also reads an event stream or JSON lines. A page
 * or plain text is the upstream's failure. The last event is `end`.
 */
export function readResponseBody(body: string, reader: EventReader): GenerationEvent[] {
  const text = body.charCodeAt(0) === 0xfeff ? body.slice(1) : body;
  const value = parseTolerantly(text, reader.repairs);
  if (value !== undefined && value !== null && typeof value === "object") return reader.readBody(value);
  if (/^\s*((data|event|id|retry|error)?:|\{)/.test(text)) {
    reader.repairs.note("stream-body");
    return [...reader.push(text), ...reader.end()];
  }
  const failure = failureOfText(text.trim() === "" ? "The upstream's answer is empty." : text);
  return reader.abandon({ kind: "upstream-error", failure });
}

/** Strings (to be skipped, one that does not end as well) and the number words that Python's `json.dumps` writes though JSON has none. */
const numberWords = /"(?:[^"\\]|\\.)*"?|-?\b(?:NaN|Infinity)\b/gs;

/** Parses JSON, with Python's NaN and Infinity as null. undefined: not JSON. */
export function parseTolerantly(text: string, repairs: RepairLog): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    if (!/NaN|Infinity/.test(text)) return undefined;
  }
  try {
    const value: unknown = JSON.parse(text.replace(numberWords, (word) => (word.startsWith('"') ? word : "null")));
    repairs.note("not-a-number");
    return value;
  } catch {
    return undefined;
  }
}
