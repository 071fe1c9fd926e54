import { expect, test } from "vitest";
import { answerId, requestId, toolCallId } from "./ids.ts";

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
