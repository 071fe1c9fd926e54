import { expect, test } from "vitest";
import { chatCompletion, chatChunk } from "../../../../wire/apis/chat/schema.ts";
import { schemaViolations } from "./validate.ts";

const answer = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
};

test("a right answer has no violation", () => {
  expect(schemaViolations(chatCompletion, answer)).toEqual([]);
});

test("a missing member is named with its path", () => {
  const message = { role: "assistant" };
  const wrong = { ...answer, choices: [{ index: 0, message, finish_reason: "stop" }] };
  expect(schemaViolations(chatCompletion, wrong)).toMatchObject([
    { path: "choices[0].message.content", found: "is missing" },
  ]);
});

test("of a union, the branch that was meant is reported, as one error", () => {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: { a: 1 } } };
  const message = { role: "assistant", content: null, tool_calls: [call] };
  const wrong = { ...answer, choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
  expect(schemaViolations(chatCompletion, wrong)).toEqual([
    {
      path: "choices[0].message.tool_calls[0].function.arguments",
      found: 'is {"a":1}, must be string',
      keys: ["choices", 0, "message", "tool_calls", 0, "function", "arguments"],
      member: "arguments",
    },
  ]);
});

test("a nullable member of the wrong type is told by its type, not by its union", () => {
  const chunk = {
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [],
    usage: { prompt_tokens: "3", total_tokens: 3 },
  };
  expect(schemaViolations(chatChunk, chunk)).toMatchObject([
    { path: "usage.prompt_tokens", found: 'is "3", must be number' },
  ]);
});
