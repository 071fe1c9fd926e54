import { expect, test } from "vitest";
import { requireFormat } from "./known.ts";
import { plainText } from "./plain-text.ts";
import { thoughtClosings } from "./thought-closings.ts";

test("a marker closes reasoning; in a routed format, an end marker and the next header", () => {
  expect(thoughtClosings(requireFormat("hermes"), "<|im_start|>assistant\n<think>\n")).toEqual(["</think>"]);
  const next = "<|end|><|start|>assistant";
  expect(thoughtClosings(requireFormat("gpt-oss"), "<|start|>assistant")).toEqual([
    next,
    `${next}<|channel|>final<|message|>`,
  ]);
  expect(thoughtClosings(plainText, "")).toEqual([]);
  expect(thoughtClosings(requireFormat("functionary-v3.2"), ">>>")).toEqual([]);
});
