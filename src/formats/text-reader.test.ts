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

test("a token's logprob goes out with the text that holds its last character, and nowhere for calls and markers", () => {
  const tokens = [
    "<think>",
    "h",
    "m</",
    "think>",
    "\n\n",
    "Yes",
    "",
    "!",
    "<tool_call>",
    '{"name": "f", "arguments": {}}',
  ];
  const reader = new TextReader({ format: hermes, choice: 0, newCallId: () => "call_0" });
  const events = tokens.flatMap((token) => reader.push(token, { token, logprob: -1, bytes: null, top: [] }));
  const shown = [...events, ...reader.end()].flatMap((event) =>
    "logprobs" in event ? [[event.type, event.text, event.logprobs?.map(({ token }) => token)]] : [],
  );
  expect(shown).toEqual([
    ["reasoning-delta", "h", ["h"]],
    ["text-delta", "Yes", ["Yes"]],
    ["text-delta", "", [""]],
    ["text-delta", "!", ["!"]],
  ]);
});

test("while a call is open its raw text can be asked for, from the opener on", () => {
  const reader = new TextReader({ format: hermes, choice: 0, newCallId: () => "call_0" });
  reader.push("Well <tool");
  expect([reader.phase, reader.openCall]).toEqual(["content", null]);
  reader.push('_call>\n{"na');
  expect([reader.phase, reader.openCall]).toEqual(["call", '<tool_call>\n{"na']);
  reader.push('me": "f", "arguments": {"a": 1');
  expect([reader.phase, reader.openCall]).toEqual(["call", '<tool_call>\n{"name": "f", "arguments": {"a": 1']);
  reader.push("}}");
  expect([reader.phase, reader.openCall, reader.sawCalls]).toEqual(["content", null, true]);
});

test("arguments go out as they come, and the name once, when they have begun", () => {
  const reader = new TextReader({ format: hermes, choice: 0, newCallId: () => "call_0" });
  const steps = ['<tool_call>{"name": "f", "arguments": {', '"a"', ": [1, ", "2]", "}}"].map((piece) =>
    reader.push(piece),
  );
  expect(steps.map((events) => events.map((event) => ("arguments" in event ? event.arguments : event.type)))).toEqual([
    [],
    ["tool-call-start", '{"a"'],
    [": [1, "],
    ["2]"],
    ["}", "tool-call-end"],
  ]);
});

test("tagged values stream: strings at once, others when they are complete", () => {
  const format = formatNamed("qwen3-coder") ?? plainText;
  const properties = { path: { type: "string" }, lines: { type: "array" } };
  const tools = [{ name: "edit", parameters: { type: "object", properties } }];
  const reader = new TextReader({ format, choice: 0, newCallId: () => "call_0", tools });
  const pieces = [
    "<tool_call>\n<function=edit>\n<parameter=path>\n/a",
    "/b\n",
    "</parameter>\n<parameter=lines>\n[1,",
    "2]\n</parameter>",
  ];
  const json = pieces.map((piece) =>
    reader
      .push(piece)
      .map((event) => (event.type === "tool-call-delta" ? event.arguments : ""))
      .join(""),
  );
  expect(json).toEqual(['{"path":"/a', "/b", '"', ',"lines":[1,2]']);
});

test("a call of a tool that the request does not have stays text, known calls remain", () => {
  const call = (name: string) => `<tool_call>{"name": "${name}", "arguments": {}}</tool_call>`;
  const got = read(`${call("g")}\n${call("f")}`, { tools: [{ name: "f" }] });
  expect(got.text?.trim()).toBe(call("g"));
  expect(got.toolCalls).toMatchObject([{ name: "f", status: "succeeded" }]);
  expect(read(call("f"), { callsAllowed: false }).text).toBe(call("f"));
});

test("a call that turns out bad after its name was sent has failed, with its raw text", () => {
  const text = '<tool_call>{"name": "f", "arguments": {"a": oops}}</tool_call>';
  const reader = new TextReader({ format: hermes, choice: 0, newCallId: () => "call_0" });
  const events = [...reader.push(text), ...reader.end()];
  const raw = text.replace("</tool_call>", "");
  expect(events).toContainEqual({ type: "tool-call-end", choice: 0, index: 0, status: "failed", raw });
  expect(read(text)).toMatchObject({ text: null, toolCalls: [{ name: "f", status: "failed" }] });
});

test("a call that was cut keeps what was streamed, and is closed only if the text ended by itself", () => {
  const format = formatNamed("qwen3-coder") ?? plainText;
  const text = "<tool_call>\n<function=f>\n<parameter=a>\nlong te";
  const end = (cut: boolean) => {
    const reader = new TextReader({ format, choice: 0, newCallId: () => "call_0" });
    return accumulate([...reader.push(text), ...reader.end(cut)]).choices[0]?.toolCalls;
  };
  expect(end(true)).toMatchObject([{ arguments: '{"a":"long te', status: "failed" }]);
  expect(end(false)).toMatchObject([{ arguments: '{"a":"long te"}', status: "succeeded" }]);
});
