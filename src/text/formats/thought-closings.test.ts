import { expect, test } from "vitest";
import { requireFormat } from "./known.ts";
import { plainText } from "./format.ts";
import { reasoningClosings } from "./reasoning.ts";

test("a marker closes reasoning; in a routed format, an end marker and the next header", () => {
  expect(reasoningClosings(requireFormat("hermes"), "<|im_start|>assistant\n<think>\n")).toEqual(["</think>"]);
  const next = "<|end|><|start|>assistant";
  expect(reasoningClosings(requireFormat("gpt-oss"), "<|start|>assistant")).toEqual([
    next,
    `${next}<|channel|>final<|message|>`,
  ]);
  expect(reasoningClosings(plainText, "")).toEqual([]);
  expect(reasoningClosings(requireFormat("functionary-v3.2"), ">>>")).toEqual([]);
});
