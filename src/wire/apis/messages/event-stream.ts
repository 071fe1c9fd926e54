import { base64, bytesOfBase64 } from "../base64-json.ts";
import { isObject } from "../../core/json.ts";
import type { JsonObject } from "../../core/json.ts";

/*
 * AWS's event streams, in which Bedrock sends the events of the Messages API. A message is a prelude (the lengths of the message and of its
 * headers, and their CRC-32), headers, a payload, and the CRC-32 of it all. Sources:
 * https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html and
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html.
 */

export const eventStreamType = "application/vnd.amazon.eventstream";

const preludeSize = 12;
/** AWS's limit of a message, which has a payload of at most 16 MiB. */
const maxMessage = 24 * 1024 * 1024;

/** Anthropic's types of errors, by AWS's names of exceptions. */
const errorTypes: Readonly<Record<string, string>> = {
  throttlingException: "rate_limit_error",
  serviceQuotaExceededException: "rate_limit_error",
  validationException: "invalid_request_error",
  accessDeniedException: "permission_error",
  resourceNotFoundException: "not_found_error",
  serviceUnavailableException: "overloaded_error",
  modelTimeoutException: "timeout_error",
};

/** Writes the events of a stream as SSE of the Messages API. */
export interface StreamEvents {
  /** `payload`: undefined if it is not the JSON of an object. */
  event(type: string, payload: JsonObject | undefined): string;
  /** What is left at the end of the stream. */
  end(): string;
}

/** Reads an event stream, which may be split anywhere, as the SSE of the Messages API. What is wrong with it becomes an `error` event. */
export class EventStreamDecoder {
  readonly #events: StreamEvents;
  #chunks: Uint8Array[] = [];
  #size = 0;
  /** The number of bytes with which something can be read. */
  #needed = preludeSize;
  #hasFailed = false;

  /** `events`: default those of InvokeModelWithResponseStream. */
  constructor(events: StreamEvents = { event: chunkEvent, end: () => "" }) {
    this.#events = events;
  }

  write(bytes: Uint8Array): string {
    if (this.#hasFailed) return "";
    this.#chunks.push(bytes.slice());
    this.#size += bytes.length;
    if (this.#size < this.#needed) return "";
    const all = joined(this.#chunks, this.#size);
    let text = "";
    let at = 0;
    for (;;) {
      const left = all.length - at;
      const length = left < preludeSize ? preludeSize : messageLength(all.subarray(at, at + preludeSize));
      if (length === undefined) return text + this.#fail("has a damaged message");
      this.#needed = length;
      if (left < length || left < preludeSize) break;
      const message = readMessage(all.subarray(at, at + length));
      if (message === undefined) return text + this.#fail("has a message whose CRC does not match");
      text += sseOf(message, this.#events);
      at += length;
    }
    this.#chunks = [all.subarray(at)];
    this.#size = all.length - at;
    return text;
  }

  end(): string {
    if (this.#size > 0) return this.#fail("ends within a message");
    return this.#hasFailed ? "" : this.#events.end();
  }

  #fail(why: string): string {
    this.#chunks = [];
    this.#size = 0;
    if (this.#hasFailed) return "";
    this.#hasFailed = true;
    return errorEvent("api_error", `The event stream ${why}.`);
  }
}

interface EventStreamMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Uint8Array;
}

function joined(chunks: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** undefined: this is no prelude. */
function messageLength(prelude: Uint8Array): number | undefined {
  const view = viewOf(prelude);
  const length = view.getUint32(0);
  const isWhole = crc32(prelude.subarray(0, 8)) === view.getUint32(8);
  const hasRoom = length >= preludeSize + 4 + view.getUint32(4) && length <= maxMessage;
  return isWhole && hasRoom ? length : undefined;
}

/** undefined: it was damaged. */
function readMessage(bytes: Uint8Array): EventStreamMessage | undefined {
  const view = viewOf(bytes);
  const end = bytes.length - 4;
  if (crc32(bytes.subarray(0, end)) !== view.getUint32(end)) return undefined;
  const payloadAt = preludeSize + view.getUint32(4);
  const headers = readHeaders(bytes.subarray(preludeSize, payloadAt));
  return headers && { headers, payload: bytes.subarray(payloadAt, end) };
}

/** The size of a header's value by its type; that of a text (7) and of bytes (6) is written before it. */
const valueSizes = [0, 0, 1, 2, 4, 8, undefined, undefined, 8, 16];

/** The headers with texts. undefined: these are no headers. */
function readHeaders(bytes: Uint8Array): Readonly<Record<string, string>> | undefined {
  const headers: Record<string, string> = {};
  const view = viewOf(bytes);
  const decoder = new TextDecoder();
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + view.getUint8(at);
    if (nameEnd + 1 > bytes.length) return undefined;
    const type = view.getUint8(nameEnd);
    const hasLength = type === 6 || type === 7;
    if (type >= valueSizes.length || (hasLength && nameEnd + 3 > bytes.length)) return undefined;
    const start = nameEnd + (hasLength ? 3 : 1);
    const end = start + (valueSizes[type] ?? view.getUint16(nameEnd + 1));
    if (end > bytes.length) return undefined;
    if (type === 7)
      headers[decoder.decode(bytes.subarray(at + 1, nameEnd))] = decoder.decode(bytes.subarray(start, end));
    at = end;
  }
  return headers;
}

function sseOf({ headers, payload }: EventStreamMessage, events: StreamEvents): string {
  const { ":message-type": kind, ":exception-type": exception = "", ":error-message": message } = headers;
  const said = parsed(new TextDecoder().decode(payload));
  if (kind === "event") return events.event(headers[":event-type"] ?? "", said);
  const words = said?.["message"] ?? message;
  return errorEvent(errorTypes[exception] ?? "api_error", typeof words === "string" ? words : exception);
}

function chunkEvent(type: string, payload: JsonObject | undefined): string {
  if (type !== "chunk") return "";
  const encoded = payload?.["bytes"];
  const event = typeof encoded === "string" ? decodedBase64(encoded) : undefined;
  if (event === undefined) return errorEvent("api_error", "The event stream has an event without bytes.");
  return `data: ${event.replace(/[\r\n]/g, " ")}\n\n`;
}

export function errorEvent(type: string, message: string): string {
  return `event: error\ndata: ${JSON.stringify({ type: "error", error: { type, message } })}\n\n`;
}

function parsed(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function decodedBase64(text: string): string | undefined {
  try {
    return new TextDecoder().decode(bytesOfBase64(text));
  } catch {
    return undefined;
  }
}

/** Writes the SSE of the Messages API, whole events of it, as messages of an event stream. */
export function eventStreamOf(sse: string): Uint8Array {
  const events = sse.split("\n\n").flatMap((event) => {
    const at = event.startsWith("data: ") ? 0 : event.indexOf("\ndata: ") + 1;
    const data = event.slice(at + "data: ".length);
    if (!event.startsWith("data: ", at)) return [];
    const json = { ":content-type": "application/json" };
    if (!event.startsWith("event: error")) {
      const bytes = base64(new TextEncoder().encode(data));
      return [
        eventStreamMessage({ ":event-type": "chunk", ...json, ":message-type": "event" }, `{"bytes":"${bytes}"}`),
      ];
    }
    const error = parsed(data)?.["error"];
    const { type, message } = isObject(error) ? error : {};
    const name = Object.entries(errorTypes).find(([, one]) => one === type)?.[0] ?? "internalServerException";
    return [
      eventStreamMessage(
        { ":exception-type": name, ...json, ":message-type": "exception" },
        JSON.stringify({ message }),
      ),
    ];
  });
  return joined(
    events,
    events.reduce((sum, { length }) => sum + length, 0),
  );
}

/** Writes a message with headers of texts. */
export function eventStreamMessage(headers: Readonly<Record<string, string>>, payload: string): Uint8Array {
  const encoder = new TextEncoder();
  const head = Object.entries(headers).flatMap(([name, value]) => {
    const [shownName, shownValue] = [encoder.encode(name), encoder.encode(value)];
    const length = shownValue.length;
    return [Uint8Array.of(shownName.length), shownName, Uint8Array.of(7, length >> 8, length & 255), shownValue];
  });
  const body = encoder.encode(payload);
  const headSize = head.reduce((sum, { length }) => sum + length, 0);
  const size = preludeSize + headSize + body.length + 4;
  const bytes = joined([new Uint8Array(preludeSize), ...head, body], size);
  const view = viewOf(bytes);
  view.setUint32(0, size);
  view.setUint32(4, headSize);
  view.setUint32(8, crc32(bytes.subarray(0, 8)));
  view.setUint32(size - 4, crc32(bytes.subarray(0, size - 4)));
  return bytes;
}

/** Of the polynomial of zlib, reversed. */
const crcTable: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (crcTable[(crc ^ byte) & 255] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}
