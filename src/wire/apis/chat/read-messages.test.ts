import { expect, test } from "vitest";
import type { Message, Tool } from "../../core/message.ts";
import type { GenerationRequest } from "../../core/request.ts";
import type { ReadChoicesRequest } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { exact } from "../profile.ts";
import { readChatRequest } from "./request.ts";
import { writeChatRequest } from "./send.ts";
import { cpuMs } from "../../../../test/support/hang.ts";

function read(members: object, options: ReadOptions = {}): ReadChoicesRequest {
  return readChatRequest({ model: "m", messages: [{ role: "user", content: "Hello" }], ...members }, "req_1", options);
}

function messages(list: readonly object[]): readonly Message[] {
  const { prompt } = read({ messages: list }).request;
  return prompt.kind === "chat" ? prompt.messages : [];
}

test("converts every role and part; strings stay strings, parts stay parts", () => {
  const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } };
  expect(
    messages([
      { role: "developer", content: "d", name: null },
      { role: "system", content: [{ type: "text", text: "s" }] },
      {
        role: "user",
        name: "Ann",
        content: [
          { type: "text", text: "look" },
          image,
          { type: "image_url", image_url: "http://a/b.png" },
          { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
          { type: "file", file: { file_id: "f" } },
        ],
      },
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }], refusal: null, reasoning_content: "hm" },
    ]),
  ).toEqual([
    { role: "developer", content: "d" },
    { role: "system", content: [{ type: "text", text: "s" }] },
    {
      role: "user",
      name: "Ann",
      content: [
        { type: "text", text: "look" },
        { type: "image", url: "data:image/png;base64,AA==", detail: "low" },
        { type: "image", url: "http://a/b.png" },
        { type: "audio", data: "AA==", format: "wav" },
        { type: "file", id: "f" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm" },
        { type: "refusal", refusal: "no" },
      ],
    },
  ]);
});

test("results get the name of their call; arguments are unchanged, even malformed ones", () => {
  const calls = [
    { id: "call_a", type: "function", function: { name: "f", arguments: '{"x":' } },
    { id: "call_b", type: "custom", custom: { name: "g", input: "free text" } },
  ];
  expect(
    messages([
      { role: "assistant", content: null, tool_calls: calls },
      { role: "tool", tool_call_id: "call_b", content: "B" },
      { role: "tool", tool_call_id: "call_a", content: "A" },
    ]),
  ).toEqual([
    {
      role: "assistant",
      content: [
        { type: "tool-call", id: "call_a", name: "f", arguments: '{"x":' },
        { type: "tool-call", id: "call_b", name: "g", arguments: "free text", kind: "custom" },
      ],
    },
    { role: "tool", toolCallId: "call_b", content: "B", name: "g" },
    { role: "tool", toolCallId: "call_a", content: "A", name: "f" },
  ]);
});

test("profile lean accepts a result without its call, with a warning", () => {
  const { warnings } = read({ messages: [{ role: "tool", tool_call_id: "x", content: "A" }] });
  expect(warnings).toEqual([
    "OpenAI would answer 400: Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
  ]);
});

test("legacy functions and results become tools and calls", () => {
  const { request, requested: asked } = read({
    messages: [
      { role: "assistant", content: null, function_call: { name: "f", arguments: "{}" } },
      { role: "function", name: "f", content: "A" },
    ],
    functions: [{ name: "f" }],
    function_call: { name: "f" },
  });
  const id = "call_000000000000000000000000";
  expect(request.prompt).toEqual({
    kind: "chat",
    messages: [
      { role: "assistant", content: [{ type: "tool-call", id, name: "f", arguments: "{}" }] },
      { role: "tool", toolCallId: id, content: "A", name: "f" },
    ],
    legacyFunctions: true,
    template: {},
  });
  expect(request).toMatchObject({ toolChoice: { type: "named", name: "f" }, parallelToolCalls: false });
  expect(asked).toMatchObject({ legacyFunctions: true, namedToolChoice: true });
});

test("tools and the choice between them", () => {
  const tools = [
    { type: "function", function: { name: "f", description: "d", parameters: { type: "object" }, strict: false } },
    { type: "custom", custom: { name: "c", description: null, format: { type: "text" } } },
  ];
  const neutral: readonly Tool[] = [
    { name: "f", description: "d", parameters: { type: "object" }, strict: false },
    { name: "c", kind: "custom" },
  ];
  const held = (syntax: string): unknown => [
    { type: "custom", custom: { name: "c", format: { type: "grammar", grammar: { syntax, definition: "a+" } } } },
  ];
  const grammar = { syntax: "regex", definition: "a+" };
  expect(read({ tools: held("regex") }).request.tools).toEqual([{ name: "c", kind: "custom", inputGrammar: grammar }]);
  expect(read({ tools: held("lark") }).request.tools).toMatchObject([{ inputGrammar: { ...grammar, syntax: "lark" } }]);
  const choice = (value: unknown): GenerationRequest["toolChoice"] =>
    read({ tools, tool_choice: value }).request.toolChoice;
  expect(read({ tools }).request.tools).toEqual(neutral);
  expect(choice("required")).toEqual({ type: "required" });
  expect(choice({ type: "custom", custom: { name: "c" } })).toEqual({ type: "named", name: "c" });
  const allowed = { mode: "auto", tools: [{ type: "function", function: { name: "f" } }] };
  expect(choice({ type: "allowed_tools", allowed_tools: allowed })).toEqual({
    type: "allowed",
    mode: "auto",
    names: ["f"],
  });
});

test("in profile lean, an empty list of tools means no tools", () => {
  expect(read({ tools: [], parallel_tool_calls: true }).request).not.toHaveProperty("tools");
});

test.each<[object, unknown]>([
  [{ response_format: { type: "text" } }, undefined],
  [{ response_format: { type: "json_object" } }, { type: "json-object" }],
  [
    { response_format: { type: "json_schema", json_schema: { name: "a", schema: {}, strict: true } } },
    { type: "json-schema", name: "a", schema: {}, strict: true, path: "response_format.json_schema.schema" },
  ],
  [
    { response_format: { type: "json_object", schema: { type: "array" } } },
    { type: "json-schema", name: "response", schema: { type: "array" }, strict: false, path: "response_format.schema" },
  ],
  [
    { guided_json: '{"type":"null"}' },
    { type: "json-schema", name: "response", schema: { type: "null" }, strict: false, path: "guided_json" },
  ],
  [{ guided_regex: "a+" }, { type: "regex", pattern: "a+", path: "guided_regex" }],
  [{ guided_choice: ["a", "b"] }, { type: "choice", options: ["a", "b"], path: "guided_choice" }],
  [{ grammar: "root ::= [a]" }, { type: "grammar", gbnf: "root ::= [a]", path: "grammar" }],
  [{ grammar: "" }, undefined],
  [{ structured_outputs: { regex: "a" } }, { type: "regex", pattern: "a", path: "structured_outputs.regex" }],
])("output constraint of %j", (members, constraint) => {
  expect(read(members).request.output).toEqual(constraint);
});

test("template options", () => {
  const { request } = read({
    chat_template_kwargs: { a: 1, b: 1 },
    template_vars: { b: 2 },
    response_prefix: "Sure",
    reasoning_effort: "low",
  });
  expect(request.prompt).toMatchObject({ template: { variables: { a: 1, b: 2 }, responsePrefix: "Sure" } });
  expect(request.reasoning).toEqual({ effort: "low" });
});

test("long conversations are read in linear time", () => {
  const turn = (index: number): object[] => [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: `call_${index}`, type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: `call_${index}`, content: [{ type: "text", text: "x".repeat(50) }] },
  ];
  const time = (turns: number): number => {
    const list = Array.from({ length: turns }, (_, index) => turn(index)).flat();
    return cpuMs(() => expect(messages(list)).toHaveLength(turns * 2));
  };
  time(500);
  const [few, many] = [Math.min(time(1000), time(1000), time(1000)), Math.min(time(8000), time(8000))];
  // Eight times the messages: quadratic work would take 64 times as long.
  expect(many).toBeLessThan(few * 32 + 50);
});

// LangChain puts what a tool has shown into its result. We answered 400, and the conversation could never go on: our tests knew results
// of text only.
test("the result of a tool may have images and files, which profile exact refuses as OpenAI does", () => {
  const shown = [
    { type: "text", text: "The cover:" },
    { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
    { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" } },
  ];
  const messages = [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_a", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "call_a", content: shown },
  ];
  const { request } = readChatRequest({ model: "m", messages }, "r");
  expect(request.prompt).toMatchObject({
    messages: [
      {},
      {
        role: "tool",
        content: [
          { type: "text", text: "The cover:" },
          { type: "image", url: "data:image/png;base64,AA==" },
          { type: "file", name: "a.pdf" },
        ],
      },
    ],
  });
  const sent = writeChatRequest(request, {})["messages"] as { role: string; content: unknown }[];
  expect(sent.map(({ role }) => role)).toEqual(["assistant", "tool", "user"]);
  expect(sent[1]?.content).toBe("The cover:");
  expect(sent[2]?.content).toEqual([
    { type: "text", text: "Image in the result of the tool call call_a:" },
    shown[1],
    { type: "text", text: "File in the result of the tool call call_a:" },
    shown[2],
  ]);
  expect(() => readChatRequest({ model: "m", messages }, "r", { profile: exact })).toThrow(
    "Invalid value: 'image_url'. Supported values are: 'text'.",
  );
});
