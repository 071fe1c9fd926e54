import { describe, expect, test } from "vitest";
import type { Capture } from "./capture.ts";
import { judged } from "./judging.ts";
import { droppedCaptures } from "./read-captures.ts";

interface Sample {
  readonly path: string;
  readonly request: Readonly<Record<string, unknown>>;
  /** The data of its events; the names of events and whatever is missing is left to be mended. */
  readonly events: readonly object[];
  /** Some of what is mended. */
  readonly repairs: readonly string[];
  /** What rules are about. */
  readonly broken: RegExp;
  /** In the mended answer. */
  readonly end: string;
}

const samples: Readonly<Record<string, Sample>> = {
  chat: {
    path: "/v1/chat/completions",
    request: { model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] },
    events: [
      { choices: [{ index: 0, delta: { role: "assistant", content: "Hel" } }] },
      { choices: [{ index: 0, delta: { content: "lo" }, finish_reason: "eos" }] },
    ],
    repairs: ["no-done"],
    broken: /^(envelope|delta|finish|sse)\//,
    end: "data: [DONE]",
  },
  completions: {
    path: "/v1/completions",
    request: { model: "m", stream: true, prompt: "Once" },
    events: [
      { object: "text_completion", choices: [{ index: 0, text: " upon" }] },
      { object: "text_completion", choices: [{ index: 0, text: " a time", finish_reason: "eos" }] },
    ],
    repairs: ["no-done"],
    broken: /^(envelope|finish|sse)\//,
    end: "data: [DONE]",
  },
  responses: {
    path: "/v1/responses",
    request: { model: "m", stream: true, input: "Hi" },
    events: [
      {
        type: "response.created",
        response: { id: "resp_1", object: "response", status: "in_progress", model: "m", output: [] },
      },
      { type: "response.output_text.delta", item_id: "msg_1", output_index: 0, content_index: 0, delta: "Hello" },
      {
        type: "response.completed",
        response: { id: "resp_1", object: "response", status: "completed", model: "m", output: [] },
      },
    ],
    repairs: ["no-event-name", "item-added"],
    broken: /^responses\//,
    end: '"type":"response.completed"',
  },
  messages: {
    path: "/v1/messages",
    request: { model: "m", stream: true, max_tokens: 9, messages: [{ role: "user", content: "Hi" }] },
    events: [
      {
        type: "message_start",
        message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], usage: {} },
      },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
      { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 1 } },
    ],
    repairs: ["block-order", "message-stop"],
    broken: /^messages\//,
    end: '"type":"message_stop"',
  },
};

/** One answer in each of the forms in which people have it. */
const forms: Readonly<Record<string, (sample: Sample, body: string) => readonly Capture[]>> = {
  "an event stream": (_, body) => droppedCaptures("a.sse", body),
  "a HAR file": ({ path, request }, body) => {
    const entry = {
      request: { method: "POST", url: `http://h${path}`, postData: { text: JSON.stringify(request) } },
      response: {
        status: 200,
        headers: [{ name: "Content-Type", value: "text/event-stream" }],
        content: { mimeType: "text/event-stream", text: body },
      },
    };
    return droppedCaptures("a.har", JSON.stringify({ log: { entries: [entry] } }));
  },
  "what curl -v printed": ({ path }, body) =>
    droppedCaptures(
      "a.txt",
      `* Connected to h (127.0.0.1) port 80
> POST ${path} HTTP/1.1\r
> Host: h\r
> \r
< HTTP/1.1 200 OK\r
< Content-Type: text/event-stream\r
< \r
${body}* Connection #0 to host h left intact
`,
    ),
};

const severities = (judgement: ReturnType<typeof judged>): string[] =>
  judgement.report.rules.flatMap(({ id, status, severity }) =>
    status === "broken" && severity === "error" ? [id] : [],
  );

describe.each(Object.entries(samples))("%s", (_, sample) => {
  const body = sample.events.map((event) => `data:${JSON.stringify(event)}\n\n`).join("");

  test.each(Object.entries(forms))("%s is judged by the API's rules, and mended", (_, captured) => {
    const [capture, ...others] = captured(sample, body);
    expect(others).toEqual([]);
    expect(capture?.body).toBe(body);
    const found = judged(capture as Capture);
    expect(
      severities(found).some((id) => sample.broken.test(id)),
      severities(found).join(),
    ).toBe(true);
    const { repaired } = found;
    expect(repaired?.repairs.map(({ id }) => id)).toEqual(expect.arrayContaining(["no-space", ...sample.repairs]));
    expect(repaired?.body).toContain(sample.end);
    const { request } = sample;
    expect(
      severities(judged({ name: "mended", body: repaired?.body ?? "", method: "POST", path: sample.path, request })),
    ).toEqual([]);
  });

  test("a refusal is judged, and has nothing to mend", () => {
    const refusal = { name: "a", body: '{"error":{"message":"No."}}', method: "POST", path: sample.path, status: 500 };
    expect(judged(refusal).repaired).toBeUndefined();
  });
});
