import { expect, test } from "vitest";
import { accumulate } from "../generation/accumulate.ts";
import { formatNamed } from "./known.ts";
import { plainText } from "./plain-text.ts";
import { TextReader } from "./text-reader.ts";
import type { TextReaderOptions } from "./text-reader.ts";

const hermes = formatNamed("hermes") ?? plainText;

function read(chunks: Iterable<string>, options: Partial<TextReaderOptions> = {}) {
  let ids = 0;
  const reader = new TextReader({ format: hermes, choice: 0, newCallId: () => `call_${ids++}`, ...options });
  const events = [...chunks].flatMap((chunk) => reader.push(chunk));
  const choice = accumulate([...events, ...reader.end()]).choices[0];
  return { ...choice, stopped: reader.stopped };
}

const text =
  '<think>\nhm\n</think>\n\nLet me see.\n<tool_call>\n{"name": "f", "arguments": {"a": [1, "}"]}}\n</tool_call>';

test("a thought, text and a call, in one piece and character by character", () => {
  for (const chunks of [[text], text]) {
    expect(read(chunks)).toMatchObject({
      reasoning: "hm",
      text: "Let me see.\n",
      toolCalls: [{ name: "f", arguments: '{"a": [1, "}"]}', status: "succeeded" }],
    });
  }
});

test("a stop string ends the visible text, also across pieces", () => {
  expect(read("one STOP two", { stop: ["STOP"], format: plainText })).toMatchObject({ text: "one ", stopped: "STOP" });
  expect(read("one STO two", { stop: ["STOP"], format: plainText })).toMatchObject({
    text: "one STO two",
    stopped: null,
  });
  expect(read(text, { stop: ["hm", "arguments"] })).toMatchObject({ stopped: null });
});
