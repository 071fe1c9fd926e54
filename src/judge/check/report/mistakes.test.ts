import { describe, expect, test } from "vitest";
import { judgeCapture } from "../check-capture.ts";
import { reportOf } from "./report-of.ts";
import { type Mistake, mistakesOf } from "./report.ts";

const request = { model: "m", messages: [{ role: "user", content: "hi" }], stream: true };

function mistakesIn(body: string, asked?: Record<string, unknown>): Mistake[] {
  return mistakesOf(reportOf("capture", [judgeCapture("capture", body, asked)]));
}

function chatStream(choice: string): string {
  const envelope = '"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1720000000,"model":"m"';
  const last = `data: {${envelope},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;
  return `data: {${envelope},"choices":[${choice}]}\n\n${last}`;
}

describe("one mistake is counted once", () => {
  // spec/chunk and choice/index were two errors.
  test("a schema and a rule about the same member", () => {
    const body = chatStream('{"index":"0","delta":{"role":"assistant","content":"Hi"},"finish_reason":null}');
    const mistakes = mistakesIn(body, request);
    expect(mistakes.map(({ id, others }) => [id, others.map((other) => other.id)])).toEqual([
      ["choice/index", ["spec/chunk"]],
    ]);
    const { counts } = reportOf("capture", [judgeCapture("capture", body, request)]);
    expect(counts).toMatchObject({ error: 1, warning: 0, note: 0 });
  });

  // item-added, item-done, item-output, part-added and part-done were five errors.
  test("a response whose items are never added", () => {
    const envelope = (status: string) =>
      `{"id":"resp_1","object":"response","created_at":1,"model":"m","status":"${status}","output":[]}`;
    const events = [
      `{"type":"response.created","sequence_number":0,"response":${envelope("in_progress")}}`,
      '{"type":"response.output_text.delta","sequence_number":1,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi","logprobs":[]}',
      `{"type":"response.completed","sequence_number":2,"response":${envelope("completed")}}`,
    ];
    const body = events
      .map((data) => `event: ${(JSON.parse(data) as { type: string }).type}\ndata: ${data}\n\n`)
      .join("");
    const lifecycle = mistakesIn(body).filter(({ id }) => /^responses\/(?:item|part)-/.test(id));
    expect(lifecycle.map(({ id }) => id)).toEqual(["responses/item-added"]);
    expect(lifecycle[0]?.others.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["responses/item-done", "responses/part-added", "responses/part-done"]),
    );
  });

  test("mistakes in different places stay two", () => {
    const choice = '{"index":0,"delta":{"role":"assistant","content":7},"finish_reason":"done"}';
    const ids = mistakesIn(chatStream(choice), request).map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(["delta/content-type", "finish/value"]));
  });
});

// The first member of that name was marked: the index of the choice.
test("the place of a call without index is the call", () => {
  const call = '{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}';
  const body = chatStream(`{"index":0,"delta":{"role":"assistant","tool_calls":[${call}]},"finish_reason":null}`);
  const { findings } = judgeCapture("capture", body, request);
  for (const rule of ["spec/chunk", "tool/index"]) {
    const found = findings.find((finding) => finding.rule === rule);
    expect(body.slice(found?.start, found?.end), rule).toBe(call);
  }
});

describe("the right bytes", () => {
  test("of an event are those that Truewire sends in its place", () => {
    const body = chatStream('{"index":"0","delta":{"role":"assistant","content":"Hi"},"finish_reason":null}');
    const [mistake] = mistakesIn(body, request);
    expect(mistake?.evidence[0]?.right).toMatch(
      /^data: \{"id":"chatcmpl-0123456789abcdef".*"choices":\[\{"index":0,"delta":\{"role":"assistant"/,
    );
  });

  test("of an end mark that is missing are the end mark", () => {
    const body = chatStream('{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}');
    const mistakes = mistakesIn(body.replace("data: [DONE]\n\n", ""), request);
    expect(mistakes.find(({ id }) => id === "end/done")?.evidence[0]?.right).toContain("data: [DONE]\n\n");
  });

  test("are absent where nothing is known to be better: a refusal, a body that is no JSON", () => {
    for (const body of ["<html>", '{"error":"no"}'])
      expect(mistakesIn(body, request).flatMap(({ evidence }) => evidence.flatMap(({ right }) => right ?? []))).toEqual(
        [],
      );
  });
});
