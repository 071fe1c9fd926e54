import { expect, test } from "vitest";
import { accumulate } from "./accumulate.ts";

test("pieces of interleaved choices come together, each in its own order", () => {
  const generation = accumulate([
    { type: "start", choice: 1 },
    { type: "text-delta", choice: 1, text: "b" },
    { type: "start", choice: 0, source: { id: "chatcmpl-1" } },
    { type: "text-delta", choice: 0, text: "a" },
    { type: "text-delta", choice: 1, text: "c" },
    { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"x"' },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: ":1}" },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
    { type: "finish", choice: 0, reason: "tool-calls" },
    { type: "finish", choice: 1, reason: "stop", stop: "d" },
    { type: "usage", usage: { promptTokens: 3, completionTokens: 4 } },
    { type: "end", end: { kind: "done" } },
  ]);
  expect(generation.source).toEqual({ id: "chatcmpl-1" });
  expect(generation.choices.map((choice) => choice.text)).toEqual(["a", "bc"]);
  expect(generation.choices[0]?.toolCalls).toEqual([
    { id: "call_1", name: "f", kind: "function", arguments: '{"x":1}', status: "succeeded" },
  ]);
  expect(generation.choices[1]?.finish).toEqual({ reason: "stop", stop: "d" });
  expect(generation.usage).toEqual({ promptTokens: 3, completionTokens: 4 });
  expect(generation.end).toEqual({ kind: "done" });
});

test("a generation without an end event is truncated, and what came is kept", () => {
  const generation = accumulate([
    { type: "start", choice: 0 },
    { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"x' },
  ]);
  expect(generation.end.kind).toBe("truncated");
  expect(generation.choices[0]).toMatchObject({
    text: null,
    finish: null,
    toolCalls: [{ arguments: '{"x', status: null }],
  });
});

test("parts of a summary may have numbers of any size", () => {
  // The parts were an array with the source's numbers as indices: joining one with the index 4,294,967,294 ended the process.
  const numbers = [4_294_967_294, 0, 1.5];
  const { choices } = accumulate([
    { type: "start", choice: 0 },
    ...numbers.map((summary) => ({ type: "reasoning-delta" as const, choice: 0, text: `${summary}`, summary })),
    { type: "end", end: { kind: "done" } },
  ]);
  expect(choices[0]?.parts).toMatchObject([{ type: "reasoning", summary: numbers.map(String) }]);
});
