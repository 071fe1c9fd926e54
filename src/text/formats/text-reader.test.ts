import { expect, test } from "vitest";
import { accumulate } from "../../wire/core/accumulate.ts";
import { formatNamed } from "./known.ts";
import { plainText } from "./format.ts";
import { TextReader, type TextReaderOptions } from "./text-reader.ts";
import { cpuMs } from "../../../test/support/hang.ts";

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

test("reasoning, text and a call, in one chunk and character by character", () => {
  for (const chunks of [[text], text]) {
    expect(read(chunks)).toMatchObject({
      reasoning: "hm",
      text: "Let me see.\n",
      toolCalls: [{ name: "f", arguments: '{"a": [1, "}"]}', status: "succeeded" }],
    });
  }
});

test("a stop string ends the visible text, also across chunks", () => {
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
    "logprobs" in event && "text" in event ? [[event.type, event.text, event.logprobs?.map(({ token }) => token)]] : [],
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
  const steps = ['<tool_call>{"name": "f", "arguments": {', '"a"', ": [1, ", "2]", "}}"].map((chunk) =>
    reader.push(chunk),
  );
  expect(steps.map((events) => events.map((event) => ("arguments" in event ? event.arguments : event.type)))).toEqual([
    [],
    ["tool-call-start", '{"a"'],
    [": [1, "],
    ["2]"],
    ["}", "tool-call-end"],
  ]);
});

test("tagged values stream: strings at once, others when they are complete, the end when what follows shows that it is one", () => {
  const format = formatNamed("qwen3-coder") ?? plainText;
  const properties = { path: { type: "string" }, lines: { type: "array" } };
  const tools = [{ name: "edit", parameters: { type: "object", properties } }];
  const reader = new TextReader({ format, choice: 0, newCallId: () => "call_0", tools });
  const chunks = [
    "<tool_call>\n<function=edit>\n<parameter=path>\n/a",
    "/b\n",
    "</parameter>\n<parameter=lines>\n[1,",
    "2]\n</parameter>",
    "\n</function>",
    "\n</tool_call>",
  ];
  const json = chunks.map((chunk) =>
    reader
      .push(chunk)
      .map((event) => (event.type === "tool-call-delta" ? event.arguments : ""))
      .join(""),
  );
  expect(json).toEqual(['{"path":"/a', "/b", '"', "", "", ""]);
  expect(reader.end()).toMatchObject([{ arguments: ',"lines":[1,2]}' }, { type: "tool-call-end" }]);
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

// The text between the fault and the close of a call used to be dropped: a client received half of the arguments, and if the model never
// closed the call, nothing of the text after it.
test("the arguments of a failed call are what the model wrote, to its close", () => {
  const cases: [format: string, text: string, json: string][] = [
    ["hermes", '<tool_call>\n{"name": "f", "arguments": {"a": oops }}\n</tool_call> ok', '{"a": oops }'],
    ["hermes", '<tool_call>{"name": "f", "arguments": {"a": oops}} never closed', '{"a": oops}} never closed'],
    ["hermes", '<tool_call>{"name": "f", "arguments": {"a": 1} oops}</tool_call> ok', '{"a": 1}'],
    ["command-r7b", '<|START_ACTION|>[{"tool_name": "f", "parameters": {"a": oops}}]<|END_ACTION|> ok', '{"a": oops}'],
    [
      "deepseek-v3.1",
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": oops}<｜tool▁call▁end｜><｜tool▁calls▁end｜> ok',
      '{"a": oops}',
    ],
    ["gpt-oss", '<|channel|>commentary to=functions.f<|message|>{"a": [oops]}<|call|>', '{"a": [oops]}'],
    ["lfm2", "<|tool_call_start|>[f(a=1, b=oops)]<|tool_call_end|> ok", '{"a":1, b=oops)]'],
  ];
  for (const [name, text, json] of cases) {
    for (const chunks of [[text], text]) {
      const { toolCalls, text: content } = read(chunks, { format: formatNamed(name) ?? plainText });
      expect(toolCalls, text).toMatchObject([{ name: "f", arguments: json, status: "failed" }]);
      expect(content?.trim(), text).toBe(text.endsWith(" ok") ? "ok" : undefined);
    }
  }
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

test("calls of tools that the request does not have are named, for the log", () => {
  const unknown = (format: string, text: string, callsAllowed = true): string[] => {
    const reader = new TextReader({
      format: formatNamed(format) ?? plainText,
      choice: 0,
      newCallId: () => "call_0",
      tools: [{ name: "f" }],
      callsAllowed,
    });
    for (const character of text) reader.push(character);
    reader.end();
    return [...reader.unknownTools];
  };
  const call = (name: string): string => `<tool_call>{"name": "${name}", "arguments": {}}</tool_call>`;
  expect(unknown("hermes", `${call("g")}${call("f")}${call("h")}${call("g")}`)).toEqual(["g", "h"]);
  expect(unknown("hermes", call("g"), false)).toEqual([]);
  expect(unknown("hermes", call("f"))).toEqual([]);
  // Without a marker, an object with a name alone may be any answer in JSON.
  expect(unknown("llama3-json", '{"name": "g", "parameters": {}}')).toEqual(["g"]);
  expect(unknown("llama3-json", '{"parameters": {}, "name": "g"}')).toEqual(["g"]);
  expect(unknown("llama3-json", '{"name": "Ann", "age": 30}')).toEqual([]);
  expect(unknown("pythonic", "[g(a=1), f()]")).toEqual(["g"]);
  expect(unknown("minicpm5", '<function name="g"><param name="a">1</param></function>')).toEqual(["g"]);
  expect(unknown("gpt-oss", '<|channel|>commentary to=functions.g<|message|>{"a": 1}<|call|>')).toEqual(["g"]);
  const many = Array.from({ length: 50 }, (_, i) => call(`g${i}`)).join("");
  expect(unknown("hermes", many)).toHaveLength(20);
});

test("a call of a custom tool carries its input, however it is written and cut", () => {
  const tools = [{ name: "run", kind: "custom" as const }, { name: "f" }];
  const input = 'print("é 😀\\n")\n</x>';
  const json = JSON.stringify({ input });
  const escaped = json.replace("😀", "\\ud83d\\ude00");
  const written: [format: string, text: string][] = [
    ["hermes", `<tool_call>{"name": "run", "arguments": ${json}}</tool_call>`],
    ["hermes", `<tool_call>{"name": "run", "arguments": ${escaped}}</tool_call>`],
    ["hermes", `<tool_call>{"arguments": ${json}, "name": "run"}</tool_call>`],
    ["hermes", `<tool_call>{"name": "run", "arguments": { "input" : ${JSON.stringify(input)}, "x": 1 }}</tool_call>`],
    ["qwen3-coder", `<tool_call><function=run><parameter=input>\n${input}\n</parameter></function></tool_call>`],
    ["lfm2", `<|tool_call_start|>[run(input=${JSON.stringify(input)})]<|tool_call_end|>`],
    ["gpt-oss", `<|channel|>commentary to=functions.run<|message|>${json}<|call|>`],
  ];
  for (const [name, text] of written) {
    for (const chunks of [[text], text, text.match(/[^]{1,3}/g) ?? []]) {
      const { toolCalls } = read(chunks, { format: formatNamed(name) ?? plainText, tools });
      expect(toolCalls, text).toMatchObject([{ name: "run", kind: "custom", arguments: input, status: "succeeded" }]);
    }
  }
});

test("arguments in another form for a custom tool are the input unchanged", () => {
  const tools = [{ name: "run", kind: "custom" as const }, { name: "f" }];
  const inputOf = (json: string): string | undefined =>
    read(`<tool_call>{"name": "run", "arguments": ${json}}</tool_call>`, { tools }).toolCalls?.[0]?.arguments;
  expect(inputOf('"ls -l"')).toBe("ls -l");
  expect(inputOf("{}")).toBe("");
  expect(inputOf('{"command": "ls"}')).toBe('{"command": "ls"}');
  expect(inputOf('{"input": 7}')).toBe('{"input": 7}');
  const call = read('<tool_call>{"name": "f", "arguments": {"input": "x"}}</tool_call>', { tools }).toolCalls?.[0];
  expect(call).toMatchObject({ kind: "function", arguments: '{"input": "x"}' });
});

test("reasoning that is not separated has the opener that the prompt wrote, before the first of it", () => {
  const merged = (chunks: Iterable<string>, prefix = "<|assistant|><think>\n", format = "qwen3.5") =>
    read(chunks, { format: formatNamed(format) ?? plainText, prefix, separateReasoning: false });
  const whole = "Hm.\n</think>\n\nYes.";
  for (const chunks of [[whole], whole]) {
    expect(merged(chunks)).toMatchObject({ reasoning: null, text: `<think>\n${whole}` });
  }
  expect(merged(["</think>Yes."]).text).toBe("<think>\n</think>Yes.");
  // The model makes its call immediately: there is no reasoning that an opener would belong to.
  expect(merged(["<tool_call>\n<function=f>\n</function>\n</tool_call>"])).toMatchObject({
    text: null,
    toolCalls: [{ name: "f" }],
  });
  expect(merged(["Yes."], "<|assistant|><think></think>").text).toBe("Yes.");
});

// gpt-oss lost its markers: reasoning and answer were not separated.
test("reasoning that is not separated keeps the headers and ends of its messages", () => {
  const reasoning =
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>analysis<|message|>So.<|end|>";
  const whole = `${reasoning}<|start|>assistant<|channel|>final<|message|>Yes.<|return|>`;
  for (const chunks of [[whole], whole]) {
    const format = formatNamed("gpt-oss") ?? plainText;
    const merged = read(chunks, { format, prefix: "<|start|>assistant", separateReasoning: false });
    expect(merged).toMatchObject({ reasoning: null, text: `${reasoning}Yes.` });
  }
});

test("a logprob stays with its token where the prompt's opener is shown", () => {
  const format = formatNamed("qwen3.5") ?? plainText;
  for (const tokens of [
    ["Hm.", "</think>", "Yes"],
    ["<tool_call>", "no call", " Yes"],
  ]) {
    const reader = new TextReader({
      format,
      choice: 0,
      newCallId: () => "",
      prefix: "<think>",
      separateReasoning: false,
    });
    const events = tokens.flatMap((token) => reader.push(token, { token, logprob: -1, bytes: null, top: [] }));
    const last = [...events, ...reader.end()].at(-1);
    expect(last).toMatchObject({ type: "text-delta", logprobs: [{ token: tokens.at(-1) }] });
  }
});

// The white space after raw arguments was scanned again with every chunk.
test("what may be the end of a call is held back in linear time", () => {
  const flood = 300_000;
  const texts: [format: string, text: string][] = [
    ["kimi-k2", `<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}${" ".repeat(flood)}x`],
    ["hermes", `<tool_call>{"name": "f", "arguments": {"a": oops${"}".repeat(flood)}x`],
  ];
  const spent = cpuMs(() => {
    for (const [name, text] of texts) {
      const { toolCalls } = read(text, { format: formatNamed(name) ?? plainText });
      expect(toolCalls?.[0]?.arguments).toHaveLength(text.length - text.indexOf("{", text.length - flood - 20));
    }
  });
  // A second or two; quadratic, it took minutes.
  expect(spent).toBeLessThan(60_000);
});
