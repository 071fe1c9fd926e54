import { Buffer } from "node:buffer";
import { describe, expect, test } from "vitest";
import { EventStreamDecoder, eventStreamMessage } from "./event-stream.ts";

const chunk = (event: object, padding = "abc"): Uint8Array =>
  eventStreamMessage(
    { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" },
    JSON.stringify({ bytes: Buffer.from(JSON.stringify(event)).toString("base64"), p: padding }),
  );

function read(bytes: Uint8Array, size = bytes.length): string {
  const decoder = new EventStreamDecoder();
  let text = "";
  for (let at = 0; at < bytes.length; at += size) text += decoder.write(bytes.subarray(at, at + size));
  return text + decoder.end();
}

// Source: https://docs.aws.amazon.com/lexv2/latest/dg/event-stream-encoding.html; the bytes are those of AWS's SDKs' own test vectors:
// https://github.com/awslabs/aws-c-event-stream/tree/main/tests (an empty message, and one with a payload).
const vectors = [
  ["empty_message", "000000100000000005c248eb7d98c8ff", {}, ""],
  ["payload_no_headers", "0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936", {}, "{'foo':'bar'}"],
] as const;

describe("AWS's own vectors", () => {
  test.each(vectors)("%s is written as there", (_, hex, headers, payload) => {
    expect(Buffer.from(eventStreamMessage(headers, payload)).toString("hex")).toBe(hex);
  });
});

describe("an event stream becomes SSE", () => {
  const events = [{ type: "message_start" }, { type: "content_block_delta", delta: { text: "Grüße 🌍\n" } }];
  const stream = Buffer.concat(events.map((event) => chunk(event)));
  const sse = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");

  test("split anywhere", () => {
    for (const size of [1, 2, 3, 7, 11, 12, 13, 64, stream.length]) expect(read(stream, size)).toBe(sse);
  });

  test.each([
    ["throttlingException", "rate_limit_error"],
    ["validationException", "invalid_request_error"],
    ["serviceUnavailableException", "overloaded_error"],
    ["modelStreamErrorException", "api_error"],
  ])("%s is Anthropic's %s", (name, type) => {
    const headers = { ":message-type": "exception", ":exception-type": name };
    const text = read(Buffer.concat([chunk(events[0] ?? {}), eventStreamMessage(headers, '{"message":"No."}')]));
    expect(text).toContain(`event: error\ndata: {"type":"error","error":{"type":"${type}","message":"No."}}`);
  });

  test("any changed or missing byte is an error, and what follows it is not read", () => {
    for (let at = 0; at < stream.length; at++) {
      const damaged = Buffer.from(stream);
      damaged[at] = (damaged[at] ?? 0) ^ 0x10;
      const text = read(damaged, 5);
      expect(text).toContain("event: error");
      expect(sse.startsWith(text.slice(0, text.indexOf("event: error")))).toBe(true);
      expect(text.match(/event: error/g)).toHaveLength(1);
    }
    for (let at = 1; at < stream.length; at++)
      if (at !== chunk(events[0] ?? {}).length) expect(read(stream.subarray(0, at))).toContain("ends within a message");
  });

  test("headers of every type are passed over", () => {
    const whole = chunk({ type: "ping" });
    const more = [
      [1, 97, 0],
      [1, 98, 2, 9],
      [1, 99, 3, 0, 9],
      [1, 100, 4, 0, 0, 0, 9],
      [1, 101, 5, 0, 0, 0, 0, 0, 0, 0, 9],
      [1, 102, 6, 0, 2, 1, 2],
      [1, 103, 8, 0, 0, 0, 0, 0, 0, 0, 9],
      [1, 104, 9, ...Array.from({ length: 16 }, () => 1)],
    ].flat();
    // The headers of a written message, with others before them.
    const view = new DataView(whole.buffer);
    const headers = whole.subarray(12, 12 + view.getUint32(4));
    const payload = Buffer.from(whole.subarray(12 + headers.length, whole.length - 4)).toString();
    expect(read(messageOf(Buffer.concat([Buffer.from(more), headers]), payload))).toBe('data: {"type":"ping"}\n\n');
    expect(read(messageOf(Buffer.from([200, 97, 7, 0, 0]), payload))).toContain("event: error");
  });
});

/** A message with these bytes as headers: the codec writes those of texts alone. */
function messageOf(headers: Buffer, payload: string): Uint8Array {
  const made = eventStreamMessage({ "": "x".repeat(headers.length - 4) }, payload);
  const bytes = Buffer.from(made);
  headers.copy(bytes, 12);
  bytes.writeUInt32BE(crc(bytes.subarray(0, bytes.length - 4)), bytes.length - 4);
  return bytes;
}

/** Bit by bit, as the standard defines it. */
function crc(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  }
  return (value ^ 0xffffffff) >>> 0;
}
