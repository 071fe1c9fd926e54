import { expect, test } from "vitest";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { formatNamed } from "../../text/formats/known.ts";
import { plainText } from "../../text/formats/format.ts";
import { OutputReader, type OutputReaderOptions } from "./output-reader.ts";
import type { ProgramItem } from "../../wire/apis/chat/program.ts";

function eventsOf(items: readonly ProgramItem[], options: Partial<OutputReaderOptions> = {}): GenerationEvent[] {
  let calls = 0;
  const reader = new OutputReader({
    choice: 0,
    newCallId: () => `call_${calls++}`,
    format: plainText,
    callsAllowed: true,
    ...options,
  });
  return [...items.flatMap((item) => reader.read(item)), ...reader.end()];
}

test("fragments are text deltas as they come, empty ones are nothing", () => {
  expect(eventsOf(["", "Hello", "", null, " world", undefined])).toEqual([
    { type: "start", choice: 0 },
    { type: "text-delta", choice: 0, text: "Hello" },
    { type: "text-delta", choice: 0, text: " world" },
    { type: "finish", choice: 0, reason: "stop" },
  ]);
});

test("an empty answer is still a choice that starts and finishes", () => {
  expect(eventsOf([]).map((event) => event.type)).toEqual(["start", "finish"]);
});

test("a whole result becomes reasoning, text, calls and a finish reason", () => {
  const events = eventsOf([
    {
      reasoning: "hm",
      text: "Let me see.",
      toolCalls: [
        { name: "f", arguments: { a: 1 } },
        { id: "x", name: "g" },
      ],
    },
  ]);
  const [choice] = accumulate(events).choices;
  expect(choice).toMatchObject({
    reasoning: "hm",
    text: "Let me see.",
    toolCalls: [
      { id: "call_0", name: "f", arguments: '{"a":1}', status: "succeeded" },
      { id: "x", name: "g", arguments: "{}", status: "succeeded" },
    ],
    finish: { reason: "tool-calls" },
  });
});

test("a structured result is sent as its JSON text", () => {
  expect(accumulate(eventsOf([{ object: { answer: 42 } }])).choices[0]?.text).toBe('{"answer":42}');
});

test("a call in pieces streams, and what follows ends it", () => {
  const events = eventsOf([
    { type: "tool-call-start", name: "f" },
    { type: "tool-call-delta", arguments: '{"a"' },
    { type: "tool-call-delta", arguments: ":1}" },
    { type: "tool-call-start", name: "g" },
    { type: "tool-call-delta", arguments: "{oops" },
  ]);
  expect(events.map((event) => event.type)).toEqual([
    "start",
    "tool-call-start",
    "tool-call-delta",
    "tool-call-delta",
    "tool-call-end",
    "tool-call-start",
    "tool-call-delta",
    "tool-call-end",
    "finish",
  ]);
  expect(events[7]).toMatchObject({ index: 1, status: "failed", raw: "{oops" });
});

// Its call went out as a function's, which no client of a custom tool takes: Codex's apply_patch was refused.
test("a call of a custom tool holds the text that the program gives", () => {
  const items: ProgramItem[] = [{ type: "tool-call", name: "patch", arguments: "*** Begin" }];
  expect(eventsOf(items, { tools: [{ name: "patch", kind: "custom" }] }).slice(1, -1)).toEqual([
    { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "patch", kind: "custom" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: "*** Begin" },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  ]);
});

test("a stop string of the client ends the text, across fragments, and what follows does not count", () => {
  const events = eventsOf(["one, two, th", "ree, four", "five"], { stop: ["three"] });
  expect(accumulate(events).choices[0]).toMatchObject({
    text: "one, two, ",
    finish: { reason: "stop", stop: "three" },
  });
});

// The reason used to stay "stop", at which clients that wait for "tool_calls" leave the call alone.
test.each<[what: string, last: ProgramItem]>([
  ["a program that says stop", { type: "finish", reason: "stop" }],
  ["a stop string", "halt"],
])("%s after a call: the choice finishes with tool-calls", (_what, last) => {
  const events = eventsOf([{ type: "tool-call", name: "f", arguments: {} }, last], { stop: ["halt"] });
  expect(events.at(-1)).toMatchObject({ type: "finish", reason: "tool-calls" });
});

test("a call that the program leaves in its text is read where a format is set, and numbered on by its own calls", () => {
  const events = eventsOf(
    [{ type: "tool-call", name: "f" }, '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'],
    { format: formatNamed("hermes") ?? plainText },
  );
  expect(accumulate(events).choices[0]?.toolCalls.map((call) => call.name)).toEqual(["f", "g"]);
});

test.each([
  [42, "a number"],
  [{ type: "shout", text: "!" }, 'an event of type "shout"'],
  [{ answer: 1 }, "an object with none of a result's members"],
])("%j is refused with a sentence that says what it is", (item, what) => {
  expect(() => eventsOf([item as unknown as ProgramItem])).toThrow(what);
});
