import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Accumulator } from "../../wire/core/accumulate.ts";
import type { GeneratedChoice } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import type { Tool } from "../../wire/core/message.ts";
import { MarkerReader } from "./marker-reader.ts";

const tools: Tool[] = [
  { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } },
];

function read(chunks: readonly string[], callsAllowed = true): GeneratedChoice | undefined {
  let made = 0;
  const reader = new MarkerReader({ choice: 0, newCallId: () => `call_${made++}`, tools, callsAllowed });
  const accumulator = new Accumulator();
  accumulator.add([{ type: "start", choice: 0 }]);
  for (const chunk of chunks) accumulator.add(reader.push(chunk));
  accumulator.add(reader.end());
  return accumulator.result().choices[0];
}

function textOf(event: GenerationEvent): string[] {
  return event.type === "text-delta" ? [event.text] : [];
}

const cases: [
  title: string,
  text: string,
  expected: { text: string | null; reasoning?: string; calls?: [string, string][] },
][] = [
  ["plain text", "Just words, 1 < 2 and [a] {b} `c`.", { text: "Just words, 1 < 2 and [a] {b} `c`." }],
  ["white space at the end", "Words \n", { text: "Words \n" }],
  [
    "Hermes",
    'Sure.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>',
    { text: "Sure.", calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "Qwen3-Coder",
    "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>",
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "Mistral",
    '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Rome"}}]',
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  ["reasoning, then text", "<think>\nHm.\n</think>\n\nYes.", { text: "Yes.", reasoning: "Hm." }],
  [
    "reasoning, then a call",
    '<think>Hm.</think><tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>',
    { text: null, reasoning: "Hm.", calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    // Another format with the same marker used to be tried first, and kept the line feeds.
    "Qwen3-Coder without its wrapper",
    "<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>",
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  // Their messages begin in the prompt, so the text begins within a header: it used to stay text.
  [
    "gpt-oss: reasoning and a call",
    '<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Rome"}<|call|>',
    { text: null, reasoning: "Hm.", calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "gpt-oss: reasoning and an answer",
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes.",
    { text: "Yes.", reasoning: "Hm." },
  ],
  ["gpt-oss: an answer alone", "<|channel|>final<|message|>Yes.", { text: "Yes." }],
  [
    "its marker in plain words",
    "The token <|channel|> opens a header, <|start|> a message.",
    { text: "The token <|channel|> opens a header, <|start|> a message." },
  ],
  [
    "DeepSeek",
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Rome"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "Kimi K2",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>',
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "GLM",
    "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call>",
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "MiniMax",
    '<minimax:tool_call>\n<invoke name="get_weather">\n<parameter name="city">Rome</parameter>\n</invoke>\n</minimax:tool_call>',
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  [
    "LFM2",
    '<|tool_call_start|>[get_weather(city="Rome")]<|tool_call_end|>',
    { text: null, calls: [["get_weather", '{"city":"Rome"}']] },
  ],
  ["a marker that is only quoted", "The tag <tool_call> opens a call.", { text: "The tag <tool_call> opens a call." }],
  [
    "a call of an unknown tool",
    '<tool_call>{"name": "other", "arguments": {}}</tool_call>',
    { text: '<tool_call>{"name": "other", "arguments": {}}</tool_call>' },
  ],
  ["an unfinished marker", "a <tool_ca", { text: "a <tool_ca" }],
];

describe("the format is found by its markers", () => {
  test.each(cases)("%s", (_, text, expected) => {
    for (const chunks of [[text], [...text]]) {
      const choice = read(chunks);
      expect(choice?.text).toBe(expected.text);
      expect(choice?.reasoning ?? "").toBe(expected.reasoning ?? "");
      expect(choice?.toolCalls.map(({ name, arguments: args }) => [name, JSON.stringify(JSON.parse(args))])).toEqual(
        expected.calls ?? [],
      );
    }
  });
});

test("without tools, what looks like a call is text", () => {
  const text = '<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>';
  expect(read([text], false)?.text).toBe(text);
});

test("however the text is cut, the reading is the same", () => {
  fc.assert(
    fc.property(fc.constantFrom(...cases), fc.array(fc.nat(160), { maxLength: 10 }), ([, text], cuts) => {
      const places = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
      const chunks = places.slice(1).map((end, i) => text.slice(places[i], end));
      expect(read(chunks)).toEqual(read([text]));
    }),
  );
});

// White space used to be held back without limit and scanned again with each token: a model that wrote endless line breaks took seconds
// of processor time, and its client received nothing.
test("endless white space is emitted in parts, and nothing is lost", () => {
  const reader = new MarkerReader({ choice: 0, newCallId: () => "x", tools });
  const count = 10_000;
  const emitted = Array.from({ length: count }, () => reader.push("\n").flatMap(textOf).join(""));
  expect(emitted.findIndex((text) => text !== "")).toBeLessThan(5000);
  expect(emitted.join("") + reader.end().flatMap(textOf).join("")).toBe("\n".repeat(count));
});

test("a token's logprob goes with the text that holds its last character", () => {
  const reader = new MarkerReader({ choice: 0, newCallId: () => "x", tools, callsAllowed: true });
  const token = (text: string): { token: string; logprob: number; bytes: null; top: [] } => ({
    token: text,
    logprob: -1,
    bytes: null,
    top: [],
  });
  const events = ["Hi", " ", "<b"].flatMap((text) => reader.push(text, token(text)));
  events.push(...reader.push("> now", token("> now")), ...reader.end());
  const emitted = events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
  expect(emitted.map(({ token }) => token)).toEqual(["Hi", " ", "<b", "> now"]);
});

test("calls of tools that the request does not have are named, for the log", () => {
  const reader = new MarkerReader({ choice: 0, newCallId: () => "call_0", tools });
  const call = (name: string): string => `<tool_call>{"name": "${name}", "arguments": {}}</tool_call>`;
  for (const text of [call("other"), " and ", call("get_weather"), call("third")]) reader.push(text);
  reader.end();
  expect([...reader.unknownTools]).toEqual(["other", "third"]);
});
