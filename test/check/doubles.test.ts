import { describe, expect, test } from "vitest";
import { judgeCapture } from "../../src/judge/check/check-capture.ts";
import { captureOf, doubles } from "../upstream/double-server.ts";

// What the trackers of these servers name, the report must name.

const request = { model: "m", messages: [{ role: "user", content: "hi" }], stream: true };

function rulesBroken(capture: string): string[] {
  return [...new Set(judgeCapture("capture", capture, request).findings.map((finding) => finding.rule))];
}

/** What a server's doubles show together. */
function brokenBy(server: string): string[] {
  return doubles
    .filter((double) => double.id.startsWith(`${server}-`))
    .flatMap((double) => rulesBroken(captureOf(double)));
}

describe("known servers", () => {
  test("LocalAI 2023: the role on every delta, event names, no id, no [DONE], usage on every chunk", () => {
    const expected = ["stream/role-once", "sse/event-name", "stream/id", "end/done", "usage/uninvited"];
    expect(brokenBy("localai-2023")).toEqual(expect.arrayContaining(expected));
  });

  test("tabbyAPI: no role, no [DONE] after an error, created for each chunk anew", () => {
    const chunk = (created: number, delta: string) =>
      `data: {"id":"cmpl-1","object":"chat.completion.chunk","created":${created},"model":"m","choices":[{"index":0,"delta":${delta},"finish_reason":null}]}\n\n`;
    const error = 'data: {"error":{"message":"Completion aborted.","trace":null}}\n\n';
    const capture = chunk(1720000000, '{"content":"Hi"}') + chunk(1720000001, '{"content":" there"}') + error;
    const broken = [...brokenBy("tabbyapi"), ...rulesBroken(capture)];
    expect(broken).toEqual(
      expect.arrayContaining(["stream/role-first", "end/done-after-error", "stream/one-created", "error/shape"]),
    );
  });

  test("Ollama: tool calls without index, and stop after calls", () => {
    const ollama = brokenBy("ollama");
    expect(ollama).toContain("tool/index");
    expect(ollama).toContain("finish/calls");
  });

  test("MLX-Textgen: three fields a delta, no blank line after [DONE]", () => {
    const envelope =
      '"id":"cmpl-1","object":"chat.completion.chunk","created":1720000000,"model":"m","system_fingerprint":null';
    const delta = '"delta":{"role":"assistant","content":"Hi","tool_calls":[]}';
    const capture = `data: {${envelope},"choices":[{"index":0,${delta},"logprobs":null,"finish_reason":null}]}\n\ndata: {${envelope},"choices":[{"index":0,${delta},"logprobs":null,"finish_reason":"stop"}]}\n\ndata: [DONE]\n`;
    expect(rulesBroken(capture)).toEqual(
      expect.arrayContaining(["stream/role-once", "sse/blank-line", "finish/own-chunk"]),
    );
  });

  test("ogx: never [DONE]", () => {
    const envelope = '"id":"chatcmpl-1","object":"chat.completion.chunk","created":1720000000,"model":"m"';
    const capture = `data: {${envelope},"choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"finish_reason":null}]}\n\ndata: {${envelope},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n`;
    expect(rulesBroken(capture)).toEqual(["end/done"]);
  });
});

/** Errors in OpenAI's shape. Their types are not OpenAI's, but no client is known to read an error's type. */
const inOrder: ReadonlySet<string> = new Set([
  "an error of its own with Anthropic's type",
  "a model that is not there",
]);

test.each(doubles.filter(({ shows }) => !inOrder.has(shows)))("$server: $shows: something is found", (double) => {
  const { findings } = judgeCapture("capture", captureOf(double), request);
  expect(findings).not.toEqual([]);
});
