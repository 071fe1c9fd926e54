import { expect, test } from "vitest";
import { readStopReason, writeStopReason } from "./stop-reasons.ts";

test.each(["stop", "tool_calls", "length", "content_filter"] as const)(
  "%s is read and written back the same",
  (word) => {
    const reason = readStopReason(word);
    expect(reason && writeStopReason(reason)).toBe(word);
  },
);

test.each([
  ["stop", "end-of-turn"],
  ["eos", "end-of-turn"],
  ["eom", "end-of-message"],
  ["<|eom_id|>", "end-of-message"],
  ["length", "out-of-tokens"],
  ["MAX_TOKENS", "out-of-tokens"],
  ["tool_calls", "end-of-message"],
  ["function_call", "end-of-message"],
  ["content_filter", "content-filter"],
  ["error", "failed"],
  ["whatever", "end-of-turn"],
  ["", null],
  [null, null],
  [undefined, null],
] as const)("%j is %j", (word, reason) => {
  expect(readStopReason(word)).toBe(reason);
});

test("tool_calls is said exactly where there are calls, unless the answer was cut", () => {
  expect(writeStopReason("end-of-message", false)).toBe("stop");
  expect(writeStopReason("end-of-turn", true)).toBe("tool_calls");
  expect(writeStopReason("out-of-tokens", true)).toBe("length");
  expect(writeStopReason("failed")).toBeNull();
});
