import { expect, test } from "vitest";
import type { Message } from "./message.ts";
import type { GenerationRequest } from "./request.ts";
import { estimateInputs, estimateTokens } from "./estimate-tokens.ts";

const request: Omit<GenerationRequest, "prompt"> = {
  id: "req_1",
  model: "m",
  sampling: {},
  limits: {},
  wantsUsage: false,
  stream: false,
  extra: {},
};
const chat = (...messages: Message[]): number =>
  estimateTokens({ ...request, prompt: { kind: "chat", messages, template: {} } });

test("a quarter of the characters, wherever they stand", () => {
  const text = "x".repeat(4000);
  const plain = chat({ role: "user", content: text });
  expect(plain).toBeGreaterThanOrEqual(1000);
  expect(plain).toBeLessThan(1010);
  expect(chat({ role: "user", content: [{ type: "text", text }] }) - plain).toBeLessThan(10);
  const call = { type: "tool-call", id: "call_1", name: "f", arguments: text } as const;
  expect(chat({ role: "assistant", content: [call] })).toBeGreaterThanOrEqual(1000);
  const tools = [{ name: "f", parameters: { type: "object", description: text } }];
  expect(estimateTokens({ ...request, tools, prompt: { kind: "text", prompts: ["x"] } })).toBe(1);
  const asked = { kind: "chat", messages: [], template: {} } as const;
  expect(estimateTokens({ ...request, tools, prompt: asked })).toBeGreaterThanOrEqual(1000);
});

// Megabytes of an image would have been a million tokens.
test("an image counts the same, however large", () => {
  const image = (size: number): number =>
    chat({ role: "user", content: [{ type: "image", url: `data:image/png;base64,${"A".repeat(size)}` }] });
  expect(image(10)).toBe(image(1_000_000));
  expect(image(10)).toBeGreaterThan(400);
});

test("token ids count as they are; nothing is one token", () => {
  expect(estimateInputs(["x".repeat(40), [1, 2, 3]])).toBe(13);
  expect([estimateInputs([""]), chat()]).toEqual([1, 1]);
});
