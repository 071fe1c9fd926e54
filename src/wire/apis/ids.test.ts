import { expect, test } from "vitest";
import { answerId, ownId, requestId, toolCallId } from "./ids.ts";

test("an answer's id begins with its time: seconds since 2019-12-20 in base 62", () => {
  expect(answerId("chatcmpl-", 1_576_800_000, () => 0)).toBe(`chatcmpl-${"0".repeat(29)}`);
  expect(answerId("cmpl-", 1_576_800_061, () => 1 - 2 ** -53)).toBe(`cmpl-0000z${"z".repeat(24)}`);
  expect(answerId("cmpl-", 1_576_800_062, () => 0)).toBe(`cmpl-00010${"0".repeat(24)}`);
});

test("ids sort by time", () => {
  const at = (created: number): string => answerId("chatcmpl-", created, Math.random);
  expect(at(1_700_000_000) < at(1_700_000_001)).toBe(true);
});

test("a clock before the epoch still gives an id of the right form", () => {
  expect(answerId("chatcmpl-", 0, Math.random)).toMatch(/^chatcmpl-00000[0-9A-Za-z]{24}$/);
});

test("the forms of other ids", () => {
  expect(toolCallId(Math.random)).toMatch(/^call_[0-9A-Za-z]{24}$/);
  expect(requestId(Math.random)).toMatch(/^req_[0-9a-f]{32}$/);
});

test("a source's id is kept if it has the prefix and can be unique", () => {
  // OpenAI, vLLM and llama.cpp, LiteLLM, text-generation-webui (nanoseconds); 2026.
  for (const rest of [
    "D2cT2f8ZTsVKGbTTVlPqQfOeYzXMu",
    "0".repeat(32),
    "7b0e1c9e-8a64-4f0c-9d9b-0d6c8f4f2f11",
    "1764360000000000000",
  ])
    expect(ownId("chatcmpl-", `chatcmpl-${rest}`)).toBe(`chatcmpl-${rest}`);
  // Ollama, KoboldCpp, a time in seconds; another prefix; none.
  for (const id of [
    "chatcmpl-17",
    "chatcmpl-A1",
    "chatcmpl-1764360000",
    "cmpl-0123456789abcdef0123",
    "chatcmpl-",
    "",
    undefined,
  ])
    expect(ownId("chatcmpl-", id)).toBeUndefined();
});
