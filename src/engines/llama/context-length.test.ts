import { expect, test } from "vitest";
import { contextLengthExceeded } from "./context-length.ts";

// The demo's 2,048 tokens fit no coding agent, and the refusal did not say what would.
test("a prompt as coding agents send it is told what to serve; any other is told in OpenAI's words alone", () => {
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
