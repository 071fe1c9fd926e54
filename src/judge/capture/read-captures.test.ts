import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readCaptures } from "./read-captures.ts";
import { writeRecording } from "./recording.ts";

const sse = 'data: {"object":"chat.completion.chunk","choices":[]}\n\ndata: [DONE]\n\n';

describe("a file of captures", () => {
  test("is read as it was recorded, whatever was said", () => {
    const text = fc.string({ unit: "binary" });
    const header = fc.tuple(text, text);
    const piece = fc.oneof(fc.record({ ms: fc.nat(), text }), fc.record({ ms: fc.nat(), base64: fc.base64String() }));
    const exchange = fc.record({
      request: fc.record({ method: fc.constantFrom("GET", "POST"), path: text, body: text }),
      response: fc.record({
        status: fc.integer({ min: 200, max: 599 }),
        headers: fc.array(header),
        pieces: fc.array(piece),
        brokeOff: fc.boolean(),
      }),
    });
    fc.assert(
      fc.property(fc.array(exchange, { minLength: 1 }), (exchanges) => {
        const file = exchanges.map((one) => `${writeRecording(one)}\n`).join("");
        const expected = exchanges.map((one, at) => ({ from: `a.jsonl:${at + 1}`, ...one }));
        expect(readCaptures(file, "a.jsonl")).toEqual(JSON.parse(JSON.stringify(expected)));
      }),
    );
  });

  test("may be the body of an answer alone: it answers its API", () => {
    const [chat] = readCaptures(sse, "a.sse");
    expect(chat).toMatchObject({
      request: { method: "POST", path: "/v1/chat/completions" },
      response: {
        status: 200,
        headers: [["content-type", "text/event-stream; charset=utf-8"]],
        pieces: [{ text: sse }],
      },
    });
    expect(chat?.request).not.toHaveProperty("body");
    const [message] = readCaptures('{"type":"message","content":[]}', "a.json");
    expect(message).toMatchObject({
      request: { path: "/v1/messages" },
      response: { headers: [["content-type", "application/json"]] },
    });
    expect(readCaptures('event: response.created\ndata: {"type":"response.created"}\n\n', "r.sse")).toMatchObject([
      { request: { path: "/v1/responses" } },
    ]);
  });

  test("may be what curl -v shows", () => {
    const transcript = [
      "*   Trying 127.0.0.1:8080...",
      "> POST /v1/chat/completions HTTP/1.1",
      "> Host: 127.0.0.1:8080",
      "> ",
      "} [66 bytes data]",
      "< HTTP/1.1 100 Continue",
      "< ",
      "< HTTP/1.1 200 OK",
      "< Content-Type: text/event-stream",
      "< ",
      "{ [128 bytes data]",
      'data: {"object":"chat.completion.chunk","choices":[]}',
      "",
      "data: [DONE]",
      "",
      "* Connection #0 to host 127.0.0.1 left intact",
      "",
    ].join("\n");
    expect(readCaptures(transcript, "t.txt")).toEqual([
      {
        from: "t.txt",
        request: { method: "POST", path: "/v1/chat/completions" },
        response: { status: 200, headers: [["Content-Type", "text/event-stream"]], pieces: [{ ms: 0, text: sse }] },
      },
    ]);
  });

  test("may be a HAR file", () => {
    const har = {
      log: {
        entries: [
          {
            time: 1234.5,
            request: {
              method: "POST",
              url: "https://h.test/v1/messages?beta=true",
              postData: { text: '{"model":"m"}' },
            },
            response: {
              status: 200,
              headers: [
                { name: ":status", value: "200" },
                { name: "content-encoding", value: "gzip" },
                { name: "content-type", value: "text/event-stream" },
              ],
              content: { text: "ZGF0YTogeA==", encoding: "base64" },
            },
          },
        ],
      },
    };
    expect(readCaptures(JSON.stringify(har), "a.har")).toEqual([
      {
        from: "a.har: log.entries[0]",
        request: { method: "POST", path: "/v1/messages?beta=true", body: '{"model":"m"}' },
        response: {
          status: 200,
          headers: [["content-type", "text/event-stream"]],
          pieces: [{ ms: 1234.5, base64: "ZGF0YTogeA==" }],
        },
      },
    ]);
  });

  test.each([
    ["", "a: the file is empty"],
    ["nothing of the kind", "a: expected a recording of truewire record, a HAR file"],
    ['{"truewire":1}', 'a:1: expected {"truewire":1,"request":{…},"response":{…}}'],
    ['{"truewire":1,"request"', "a:1: not JSON; expected a line that truewire record wrote"],
    ['{"log":{}}', 'a: expected a HAR file: {"log":{"entries":[…]}}'],
  ])("%j is refused by name", (text, message) => {
    expect(() => readCaptures(text, "a")).toThrow(message);
  });
});
