import { expect, test } from "vitest";
import type { MessageMark, PromptOutline } from "../../cache/prompt-outline.ts";
import { checkpointPositions } from "./prompt-cache.ts";

const bytesOf = (token: number): number => token;

function outline(over: Partial<PromptOutline>): PromptOutline {
  return { bytes: 0, openingBytes: 0, messages: [], tools: [], toolsStart: 0, options: "", ...over };
}

function message(role: string, start: number): MessageMark {
  return { role, path: "messages[0]", start, text: "0123456789", reasoning: "" };
}

/** Tokens of two bytes each. */
const tokens = Array.from({ length: 100 }, () => 2);

test("checkpoints are at the end of the instructions, at the last user message, and at the start of the answer", () => {
  const messages = [message("system", 0), message("user", 60), message("assistant", 100), message("user", 150)];
  const positions = checkpointPositions(tokens, outline({ bytes: 200, openingBytes: 10, messages }), bytesOf);
  expect(positions).toEqual([30, 75, 95]);
});

test("a position within a token is before it, and a BOS may precede the text", () => {
  const messages = [message("system", 0), message("user", 61)];
  const bos = [7, ...tokens];
  expect(checkpointPositions(bos, outline({ bytes: 200, openingBytes: 9, messages }), bytesOf)).toEqual([31, 96]);
});

test("a prompt that is not a conversation has a checkpoint just before its end", () => {
  expect(checkpointPositions(tokens, undefined, bytesOf)).toEqual([96]);
  const messages = [message("prompt", 0)];
  expect(checkpointPositions(tokens, outline({ bytes: 200, messages }), bytesOf)).toEqual([96]);
});

test("a prompt of a few tokens has none, and no checkpoint is after the last token", () => {
  expect(checkpointPositions(tokens.slice(0, 12), undefined, bytesOf)).toEqual([]);
  const messages = [message("system", 0), message("user", 4)];
  expect(checkpointPositions(tokens, outline({ bytes: 200, openingBytes: 200, messages }), bytesOf)).toEqual([]);
});
