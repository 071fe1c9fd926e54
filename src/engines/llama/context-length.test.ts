import { expect, test } from "vitest";
import { contextLengthExceeded } from "./context-length.ts";

// The demo's 2,048 tokens are too few for coding agents, and the error did not say which model is not.
test("the error for a prompt of a coding agent says what to serve; other errors are OpenAI's", () => {
  const agent = contextLengthExceeded(2048, 12_000, "messages").message;
  expect(agent).toMatch(
    /^This model's maximum context length is 2048 tokens\. .* hf:owner\/repo --context-size 32768\.$/,
  );
  for (const [size, tokens] of [
    [2048, 2500],
    [8192, 12_000],
  ] as const)
    expect(contextLengthExceeded(size, tokens, "messages").message).toMatch(
      / Please reduce the length of the messages\.$/,
    );
});
