import { expect, test } from "vitest";
import { askedThinking } from "./asked-thinking.ts";

// Only the effort none was heard; low, medium and high left templates without efforts of their own as they were.
test.each([
  [{}, undefined],
  [{ reasoning_effort: "none" }, false],
  [{ reasoning_effort: "minimal" }, undefined],
  [{ reasoning_effort: "low" }, true],
  [{ reasoning_effort: "high" }, true],
  [{ reasoning_effort: "high", enable_thinking: false }, false],
  [{ reasoning_effort: "none", thinking: true }, true],
  [{ enable_thinking: "yes" }, undefined],
])("%j", (variables, asked) => {
  expect(askedThinking(variables)).toBe(asked);
});
