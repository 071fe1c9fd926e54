import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatNamed } from "../../src/text/formats/known.ts";
import { plainText } from "../../src/text/formats/format.ts";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import type { Tool } from "../../src/wire/core/message.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { openProgrammed, type TestEngine } from "./local-engine.ts";

// OpenAI's custom tools take text in place of arguments. To a local model they are functions with one string.
const run: Tool = { name: "run", description: "Runs Python.", kind: "custom" };
const word: Tool = { name: "word", kind: "custom", inputGrammar: { syntax: "regex", definition: "(ja|nein)!{1,3}" } };

const scripts = {
  greeting: { say: '<tool_call>\n{"name": "run", "arguments": {"input": "print(\\"é\\")\\n"}}\n</tool_call>' },
  other: { say: '<tool_call>\n{"name": "run", "arguments": {"code": "1"}}\n</tool_call>' },
  free: { say: '<tool_call>\n{"name": "word", "arguments": {"input": "vielleicht"}}\n</tool_call>' },
  plain: { say: "The quick brown fox jumps over the lazy dog." },
};
const bounded = { limits: { maxTokens: 200 } } as const;

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed({ slots: 2 }, { scripts });
});
afterAll(() => local.close());

function calls(generation: Generation): unknown {
  return generation.choices.map((choice) =>
    choice.toolCalls.map(({ name, kind, arguments: input, status }) => ({ name, kind, input, status })),
  );
}

test.each([{ stream: true }, { stream: false }, { logprobs: { top: 1 } }])("a call is its input (%o)", async (over) => {
  const generation = await local.chat("Hi", { ...bounded, ...over, tools: [run] });
  expect(calls(generation)).toEqual([[{ name: "run", kind: "custom", input: 'print("é")\n', status: "succeeded" }]]);
  expect(generation.choices[0]?.finish?.reason).toBe("tool-calls");
});

test("other arguments are the input as the model wrote them", async () => {
  const generation = await local.chat("#other", { ...bounded, tools: [run] });
  expect(calls(generation)).toEqual([[{ name: "run", kind: "custom", input: '{"code": "1"}', status: "succeeded" }]]);
});

/** Lines, with what a JSON string must escape. */
const lines: Tool = {
  name: "word",
  kind: "custom",
  inputGrammar: { syntax: "lark", definition: 'start: line~1..3\nline: ("ja" | "\\"nein\\"") LF\n%import common.LF' },
};
const areLines = /^(?:(?:ja|"nein")\n){1,3}$/;

describe("a Lark grammar for the input", () => {
  test.each<[string, Partial<GenerationRequest>]>([
    ["required", { toolChoice: { type: "required" } }],
    ["in auto, from where a call begins", {}],
  ])("is held: %s", async (_, over) => {
    const generation = await local.chat("#free", { ...bounded, parallelToolCalls: false, ...over, tools: [lines] });
    const [call] = generation.choices[0]?.toolCalls ?? [];
    expect(call).toMatchObject({ name: "word", kind: "custom", status: "succeeded" });
    expect(call?.arguments).toMatch(areLines);
  });

  test("is held where calls are written in tags", async () => {
    const tagged = await openProgrammed({ toolFormat: formatNamed("qwen3-coder") ?? plainText }, { scripts });
    try {
      const generation = await tagged.chat("#free", { ...bounded, toolChoice: { type: "required" }, tools: [lines] });
      expect(generation.choices[0]?.toolCalls[0]?.arguments).toMatch(areLines);
    } finally {
      await tagged.close();
    }
  });

  test("that cannot be had is refused where it stands", async () => {
    const tools: Tool[] = [
      { ...lines, path: "tools[0].format", inputGrammar: { syntax: "lark", definition: "start: A" } },
    ];
    const generation = await local.chat("Hi", { ...bounded, tools });
    expect(generation.end).toMatchObject({
      kind: "rejected",
      failure: {
        status: 400,
        param: "tools[0].format.definition",
        message: "Invalid grammar at 'tools[0].format.definition': there is no terminal 'A'.",
      },
    });
  });
});

describe("a regular expression for the input", () => {
  test.each<[string, Partial<GenerationRequest>]>([
    ["required", { toolChoice: { type: "required" } }],
    ["named, twice", { toolChoice: { type: "named", name: "word" }, n: 2 }],
    ["required, with logprobs", { toolChoice: { type: "required" }, logprobs: { top: 0 } }],
  ])("is held where a call is forced: %s", async (_, over) => {
    const generation = await local.chat("#plain", { ...bounded, parallelToolCalls: false, ...over, tools: [word] });
    for (const choice of generation.choices) {
      const [call] = choice.toolCalls;
      expect(call).toMatchObject({ name: "word", kind: "custom", status: "succeeded" });
      expect(call?.arguments).toMatch(/^(ja|nein)!{1,3}$/);
    }
  });

  test("is held in auto from where a call begins", async () => {
    const generation = await local.chat("#free", { ...bounded, tools: [run, word] });
    expect(generation.choices[0]?.toolCalls[0]).toMatchObject({ name: "word", kind: "custom" });
    expect(generation.choices[0]?.toolCalls[0]?.arguments).toMatch(/^(ja|nein)!{1,3}$/);
    const text = await local.chat("#plain", { ...bounded, tools: [word] });
    expect(text.choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
  });

  test("is held where calls are written in tags", async () => {
    const tagged = await openProgrammed({ toolFormat: formatNamed("qwen3-coder") ?? plainText }, { scripts });
    try {
      const request = {
        ...bounded,
        tools: [word],
        toolChoice: { type: "required" },
        parallelToolCalls: false,
      } as const;
      const generation = await tagged.chat("#plain", request);
      expect(generation.choices[0]?.toolCalls[0]?.arguments).toMatch(/^(ja|nein)!{1,3}$/);
    } finally {
      await tagged.close();
    }
  });

  test.each([
    ["is none", "(", "invalid_value", "qwen3-coder"],
    ["looks ahead", "(?=a)b", "invalid_value", "hermes"],
    ["cannot be held where tags end the text", "<+", "unsupported_value", "glm-4.5"],
  ])("that %s is a 400 with its path", async (_, definition, code, format) => {
    const engine = await openProgrammed({ toolFormat: formatNamed(format) ?? plainText }, { scripts });
    try {
      const tools: Tool[] = [run, { ...word, inputGrammar: { syntax: "regex", definition } }];
      const { end } = await engine.chat("Hi", { ...bounded, tools });
      expect(end).toMatchObject({
        kind: "rejected",
        failure: { status: 400, code, param: "tools[1].custom.format.grammar.definition" },
      });
    } finally {
      await engine.close();
    }
  });
});

test("in the conversation, an earlier call is shown as the model would write it", async () => {
  const generation = await local.ask({
    ...bounded,
    prompt: {
      kind: "chat",
      messages: [
        { role: "user", content: "Hi" },
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "c", name: "run", arguments: "print(1)", kind: "custom" }],
        },
        { role: "tool", toolCallId: "c", content: "1" },
        { role: "user", content: "#plain" },
      ],
      template: {},
    },
    tools: [run],
  });
  expect(generation.choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
});
