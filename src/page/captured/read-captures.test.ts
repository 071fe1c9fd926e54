import { expect, test } from "vitest";
import { writeRecording } from "../../judge/capture/recording.ts";
import { droppedCaptures } from "./read-captures.ts";

const sse = 'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\ndata: [DONE]\n\n';
const request = { model: "m", messages: [], stream: true };

test("an event stream, a JSON body and anything else are themselves", () => {
  for (const text of [sse, '{"object":"list","data":[]}', '{"choices":[]}\n', "<html>no</html>", "", "* star\n> quote"])
    expect(droppedCaptures("a", text)).toEqual([{ name: "a", body: text }]);
});

test("what curl -v has printed: the head is read, the body kept to the letter", () => {
  const printed = `*   Trying 127.0.0.1:8080...
* Connected to 127.0.0.1 (127.0.0.1) port 8080
> POST /v1/chat/completions?x=1 HTTP/1.1\r
> Host: 127.0.0.1:8080\r
> \r
} [83 bytes data]
< HTTP/1.1 100 Continue\r
< \r
< HTTP/1.1 200 OK\r
< Content-Type: text/event-stream; charset=utf-8\r
< \r
{ [512 bytes data]
${sse}* Connection #0 to host 127.0.0.1 left intact
`;
  expect(droppedCaptures("a", printed)).toEqual([
    {
      name: "a: POST /v1/chat/completions?x=1",
      body: sse,
      status: 200,
      headers: { "content-type": "text/event-stream; charset=utf-8" },
      method: "POST",
      path: "/v1/chat/completions",
    },
  ]);
});

test("what curl -v has printed into a file, with its progress", () => {
  const nothing = "\r  0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0";
  const something = "\r100  1076    0   997  100    79   9159    725 --:--:-- --:--:-- --:--:--  9962";
  const [first = "", ...rest] = sse.split("\n\n");
  const printed = `  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current
                                 Dload  Upload   Total   Spent    Left  Speed
${nothing}*   Trying 127.0.0.1:8080...
> GET / HTTP/1.1\r
> \r
< HTTP/1.1 200 OK\r
< \r
{ [1026 bytes data]
${first}\n\n${something}${rest.join("\n\n")}${something}
* Connection #0 to host 127.0.0.1 left intact
`;
  expect(droppedCaptures("a", printed)).toMatchObject([{ body: sse, status: 200 }]);
});

test("what curl -i has printed", () => {
  const printed = `HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n\r\n{"error":{}}`;
  expect(droppedCaptures("a", printed)).toEqual([
    { name: "a", body: '{"error":{}}', status: 429, headers: { "retry-after": "1" } },
  ]);
});

test("a HAR file: its JSON and its event streams", () => {
  const entry = (mimeType: string, text: string, more = {}): object => ({
    request: {
      method: "POST",
      url: "http://h/v1/chat/completions",
      postData: { mimeType: "application/json", text: JSON.stringify(request) },
    },
    response: {
      status: 200,
      headers: [{ name: "Content-Type", value: mimeType }],
      content: { mimeType, text, ...more },
    },
  });
  const entries = [entry("text/html", "<p>"), entry("text/event-stream", btoa(sse), { encoding: "base64" })];
  expect(droppedCaptures("a.har", JSON.stringify({ log: { entries } }))).toEqual([
    {
      name: "a.har: log.entries[1]: POST /v1/chat/completions",
      body: sse,
      method: "POST",
      path: "/v1/chat/completions",
      request,
      status: 200,
      headers: { "content-type": "text/event-stream" },
    },
  ]);
});

test("a recording, its characters cut anywhere, and what broke off", () => {
  const bytes = new TextEncoder().encode("data: ü\n\n");
  const cut = [bytes.slice(0, 7), bytes.slice(7)].map((part, at) => ({
    ms: at,
    base64: btoa(String.fromCharCode(...part)),
  }));
  const exchange = {
    from: "",
    request: { method: "POST", path: "/v1/chat/completions", body: JSON.stringify(request) },
    response: { status: 200, headers: [["Content-Type", "text/event-stream"]] as const, pieces: cut, brokeOff: true },
  };
  expect(droppedCaptures("r", `${writeRecording(exchange)}\n${writeRecording(exchange)}\n`)).toMatchObject([
    { name: "r:1: POST /v1/chat/completions", body: "data: ü\n\n", request, complete: false },
    { name: "r:2: POST /v1/chat/completions" },
  ]);
});

test("the report of truewire check has its answers", () => {
  const exchange = {
    id: "text/stream",
    request: { method: "POST", path: "/chat/completions", body: request },
    response: { status: 200, headers: null, body: sse, complete: true },
  };
  expect(droppedCaptures("r.json", JSON.stringify({ exchanges: [exchange, { id: "not shown" }] }))).toEqual([
    { name: "r.json: text/stream", body: sse, method: "POST", path: "/chat/completions", request, status: 200 },
  ]);
});

test("lines of captures, and one alone", () => {
  const line = JSON.stringify({ id: 7, request, body: sse });
  expect(droppedCaptures("a", line)).toEqual([{ name: "a: 7", body: sse, request }]);
  const two = droppedCaptures("a", `${line}\n${line}\n`);
  expect(two.map(({ name }) => name)).toEqual(["a, line 1: 7", "a, line 2: 7"]);
});

test("a stream log: the events of each request", () => {
  const [first = "", second = ""] = sse.split("\n\n");
  const line = (id: string, event: string): string =>
    `2026-11-22T09:00:00.000Z ${id} ${event.replaceAll("\n", "\\n")}\n`;
  const log = line("req_a", first) + line("req_b", first) + line("req_a", second);
  expect(droppedCaptures("log", log)).toEqual([
    { name: "log: req_a", body: sse },
    { name: "log: req_b", body: `${first}\n\n` },
  ]);
});
