import { expect, test } from "vitest";
import { accumulate } from "../../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import type { GenerationRequest } from "../../../wire/core/request.ts";
import { inputMessages, outputMessages } from "./message-content.ts";

const request = { id: "r", model: "m", sampling: {}, limits: {}, wantsUsage: false, stream: false, extra: {} };

test("a conversation is converted part by part, without bytes of images and files", () => {
  const chat: GenerationRequest = {
    ...request,
    prompt: {
      kind: "chat",
      template: {},
      messages: [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image", url: "data:image/png;base64,AAAA" },
            { type: "image", url: "https://example.com/a.png" },
            { type: "audio", data: "BBBB", format: "wav" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "reasoning", text: "Hm." },
            { type: "tool-call", id: "call_1", name: "look", arguments: '{"at":1}' },
          ],
        },
        { role: "tool", toolCallId: "call_1", content: "A cat." },
        { role: "assistant", content: null },
      ],
    },
  };
  expect(inputMessages(chat)).toEqual([
    { role: "system", parts: [{ type: "text", content: "Be brief." }] },
    {
      role: "user",
      parts: [
        { type: "text", content: "What is this?" },
        { type: "blob", modality: "image" },
        { type: "uri", modality: "image", uri: "https://example.com/a.png" },
        { type: "blob", modality: "audio" },
      ],
    },
    {
      role: "assistant",
      parts: [
        { type: "reasoning", content: "Hm." },
        { type: "tool_call", id: "call_1", name: "look", arguments: '{"at":1}' },
      ],
    },
    { role: "tool", parts: [{ type: "tool_call_response", id: "call_1", response: "A cat." }] },
    { role: "assistant", parts: [] },
  ]);
});

test("text prompts are messages of a user; token prompts are their number", () => {
  const text: GenerationRequest = { ...request, prompt: { kind: "text", prompts: ["Once", [1, 2, 3]] } };
  expect(inputMessages(text)).toEqual([
    { role: "user", parts: [{ type: "text", content: "Once" }] },
    { role: "user", parts: [{ type: "text", content: "3 tokens" }] },
  ]);
});

test("an answer has one message for each choice, with its finish reason", () => {
  const events: GenerationEvent[] = [
    { type: "start", choice: 0 },
    { type: "reasoning-delta", choice: 0, text: "Hm." },
    { type: "text-delta", choice: 0, text: "Yes" },
    { type: "finish", choice: 0, reason: "content-filter" },
    { type: "start", choice: 1 },
    { type: "tool-call-start", choice: 1, index: 0, id: "call_1", name: "look" },
    { type: "tool-call-delta", choice: 1, index: 0, arguments: "{}" },
    { type: "end", end: { kind: "client-gone" } },
  ];
  expect(outputMessages(accumulate(events).choices)).toEqual([
    {
      role: "assistant",
      parts: [
        { type: "reasoning", content: "Hm." },
        { type: "text", content: "Yes" },
      ],
      finish_reason: "content_filter",
    },
    {
      role: "assistant",
      parts: [{ type: "tool_call", id: "call_1", name: "look", arguments: "{}" }],
      finish_reason: "error",
    },
  ]);
});
