import { expect, test } from "vitest";
import { nearest } from "./nearest.ts";

test.each([
  ["temprature", "temperature"],
  ["max_token", "max_tokens"],
  ["modles", "models"],
  ["TopP", "topP"],
  ["top_pp", "top_p"],
  ["flavour", undefined],
  ["x", undefined],
  ["temperature".repeat(9), undefined],
])("%s", (typed, meant) => {
  expect(nearest(typed, ["temperature", "max_tokens", "models", "topP", "top_p", "n", "seed"])).toBe(meant);
});
