import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatNamed } from "../../src/text/formats/known.ts";
import { plainText } from "../../src/text/formats/format.ts";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { JsonSchema, Tool } from "../../src/wire/core/message.ts";
import type { GenerationRequest, OutputConstraint } from "../../src/wire/core/request.ts";
import { programmedTemplate } from "../fixtures/programmed-template.ts";
import { standardScripts } from "../fixtures/scripts.ts";
import { chatPrompt, openProgrammed, type TestEngine } from "./local-engine.ts";

/** The scripts ask for Paris and Tokyo. */
function weather(cities: readonly string[], strict = false): Tool {
  return {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { enum: cities } },
      required: ["city"],
      additionalProperties: false,
    },
    ...(strict && { strict }),
  };
}
const clock: Tool = { name: "clock" };
const path = "response_format.json_schema.schema";
const answerSchema: JsonSchema = {
  type: "object",
  properties: { city: { const: "Oslo" }, celsius: { type: "integer", minimum: 1, maximum: 30 } },
  required: ["city", "celsius"],
};

let local: TestEngine;
const log: string[] = [];
beforeAll(async () => {
  local = await openProgrammed({ slots: 4, log: (line) => log.push(line) });
});
afterAll(() => local.close());

const bounded = { limits: { maxTokens: 300 } } as const;

function calls(generation: Generation, choice = 0): { name: string; arguments: unknown }[] {
  return (generation.choices[choice]?.toolCalls ?? []).map((call) => ({
    name: call.name,
    arguments: JSON.parse(call.arguments) as unknown,
  }));
}

function json(schema: JsonSchema, strict = false): { output: OutputConstraint } {
  return { output: { type: "json-schema", name: "x", schema, strict, path } };
}

async function rejection(over: Partial<GenerationRequest>): Promise<unknown> {
  const { end } = await local.ask({ ...bounded, ...over });
  return end.kind === "rejected" ? end.failure : end;
}

describe("tool_choice", () => {
  test.each<[string, Partial<GenerationRequest>]>([
    ["plainly", {}],
    ["not streamed", { stream: false }],
    ["with logprobs", { logprobs: { top: 1 } }],
    ["with penalties", { sampling: { temperature: 0, repeatPenalty: 1.1 } }],
  ])("required: a model that would answer in prose makes a call (%s)", async (_, over) => {
    const generation = await local.chat("#plain", {
      ...bounded,
      ...over,
      tools: [weather(["Oslo"])],
      toolChoice: { type: "required" },
      parallelToolCalls: false,
    });
    expect(calls(generation)).toEqual([{ name: "get_weather", arguments: { city: "Oslo" } }]);
    expect(generation.choices[0]).toMatchObject({ text: null, finish: { reason: "tool-calls" } });
  });

  test("named: only this one, in every choice", async () => {
    const generation = await local.chat("#call", {
      ...bounded,
      n: 3,
      tools: [weather(["Paris"]), clock],
      toolChoice: { type: "named", name: "clock" },
      parallelToolCalls: false,
    });
    for (const choice of [0, 1, 2]) expect(calls(generation, choice)).toEqual([{ name: "clock", arguments: {} }]);
  });

  test("allowed: only these, and one of them where the mode is required", async () => {
    const generation = await local.chat("#call", {
      ...bounded,
      tools: [weather(["Paris"]), clock],
      toolChoice: { type: "allowed", mode: "required", names: ["clock"] },
      parallelToolCalls: false,
    });
    expect(calls(generation)).toEqual([{ name: "clock", arguments: {} }]);
  });

  test("required leaves a model alone that does as it should", async () => {
    const tools = [weather(["Paris", "Tokyo"])];
    const generation = await local.chat("#call", { ...bounded, tools, toolChoice: { type: "required" } });
    expect(calls(generation)[0]).toEqual({ name: "get_weather", arguments: { city: "Paris" } });
  });

  // Of calls that a model made by itself, half had arguments that their tools do not take.
  test("auto without strict: a call is held to its schema all the same", async () => {
    const request = { ...bounded, tools: [weather(["Oslo"]), clock] };
    const generation = await local.chat("#text-call", request);
    // The programmed model knows its script alone: what it says behind a city that is not in it is noise, of whole calls.
    expect(generation.choices[0]?.text).toMatch(/^I will look that up for you.\n/);
    expect(calls(generation)[0]).toEqual({ name: "get_weather", arguments: { city: "Oslo" } });
    const plain = await local.chat("#plain", request);
    expect(plain.choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
  });

  test("with logprobs, the text before the call is read once for each token, and the call is held", async () => {
    const before = local.counters().decodeSteps ?? 0;
    const generation = await local.chat("#text-call", {
      ...bounded,
      logprobs: { top: 1 },
      tools: [weather(["Oslo"])],
    });
    expect(calls(generation)[0]).toEqual({ name: "get_weather", arguments: { city: "Oslo" } });
    expect(local.counters().decodeSteps).toBeGreaterThan(before);
  });

  test.each<[string, JsonSchema]>([
    ["malformed", { type: "object", properties: { city: { type: "text" } } }],
    ["of a pattern that is none", { type: "object", properties: { city: { type: "string", pattern: "(" } } }],
    ["satisfied by nothing", { type: "object", properties: { city: false }, required: ["city"] }],
    ["a reference to nothing", { $ref: "#/$defs/none" }],
  ])("auto: a schema that is %s leaves its own tool's arguments free, and only those", async (_, parameters) => {
    log.length = 0;
    const free = { ...weather(["Oslo"]), parameters };
    const other = { name: "get_time", parameters: { type: "object", properties: { city: { enum: ["Oslo"] } } } };
    const generation = await local.chat("#call", { ...bounded, tools: [free, other] });
    expect(calls(generation)[0]).toEqual({ name: "get_weather", arguments: { city: "Paris" } });
    expect(log).toEqual([]);
    const strict = await rejection({ tools: [{ ...free, strict: true }, other] });
    expect(strict).toMatchObject({ status: 400 });
  });

  test("constrainCalls false: auto without strict binds nothing", async () => {
    const loose = await openProgrammed({ constrainCalls: false });
    try {
      const generation = await loose.chat("#call", { ...bounded, tools: [weather(["Oslo"])] });
      expect(calls(generation)).toEqual([{ name: "get_weather", arguments: { city: "Paris" } }]);
    } finally {
      await loose.close();
    }
  });
});

describe("strict in auto", () => {
  test("the grammar begins with the call: text before it is free, arguments follow the schema", async () => {
    const generation = await local.chat("#text-call", {
      ...bounded,
      tools: [weather(["Oslo"], true)],
      parallelToolCalls: false,
    });
    // White space outside of a call is content.
    expect(generation.choices[0]?.text).toBe("I will look that up for you.\n");
    expect(calls(generation)).toEqual([{ name: "get_weather", arguments: { city: "Oslo" } }]);
  });

  test("an answer without a call is free", async () => {
    const generation = await local.chat("#plain", { ...bounded, tools: [weather(["Oslo"], true)] });
    expect(generation.choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
  });

  test("where a call is told by the whole text only, what begins as one is one", async () => {
    const scripts = { greeting: { say: ["[get_weather(", "city=", '"Paris"', ")]"] }, plain: { say: "No [need] to." } };
    const pythonic = await openProgrammed({ toolFormat: formatNamed("pythonic") ?? plainText }, { scripts });
    try {
      const request = { ...bounded, tools: [weather(["Oslo"], true)], parallelToolCalls: false };
      expect(calls(await pythonic.chat("Hi", request))).toEqual([{ name: "get_weather", arguments: { city: "Oslo" } }]);
      expect((await pythonic.chat("#plain", request)).choices[0]?.text).toBe("No [need] to.");
    } finally {
      await pythonic.close();
    }
  });

  test("parallel_tool_calls false: one call at most, strict or not", async () => {
    const both = await local.chat("#calls", { ...bounded, tools: [{ ...clock, name: "get_weather", parameters: {} }] });
    expect(calls(both)).toHaveLength(2);
    const one = await local.chat("#calls", { ...bounded, tools: [weather(["Paris"])], parallelToolCalls: false });
    expect(calls(one)).toEqual([{ name: "get_weather", arguments: { city: "Paris" } }]);
    expect(one.choices[0]?.finish?.reason).toBe("tool-calls");
  });
});

describe("response_format and its like", () => {
  test.each<[string, Partial<GenerationRequest>]>([
    ["plainly", {}],
    ["twice", { n: 2 }],
    ["with logprobs", { logprobs: { top: 0 } }],
  ])("a schema (%s)", async (_, over) => {
    const { choices } = await local.chat("#plain", { ...bounded, ...over, ...json(answerSchema, true) });
    expect(choices).toHaveLength(over.n ?? 1);
    for (const choice of choices) {
      const value = JSON.parse(choice.text ?? "") as { city: string; celsius: number };
      expect(value.city).toBe("Oslo");
      expect(value.celsius).toBeGreaterThanOrEqual(1);
      expect(value.celsius).toBeLessThanOrEqual(30);
      expect(choice.finish?.reason).toBe("stop");
      if (over.logprobs) expect(choice.textLogprobs?.map(({ token }) => token).join("")).toBe(choice.text);
    }
  });

  test("any object", async () => {
    const { choices } = await local.chat("#json", { ...bounded, output: { type: "json-object" } });
    expect(choices[0]?.text).toBe('{"city": "Paris", "celsius": 21, "sunny": true}');
  });

  test("a choice, a pattern, a grammar, for chat and for text", async () => {
    const cases: readonly (readonly [OutputConstraint, RegExp])[] = [
      [{ type: "choice", options: ["maybe", "no"], path: "guided_choice" }, /^(maybe|no)$/],
      [{ type: "regex", pattern: "[A-C]{3}-\\d\\d", path: "guided_regex" }, /^[A-C]{3}-\d\d$/],
      [{ type: "grammar", gbnf: 'root ::= "x" [0-9] "y"', path: "grammar" }, /^x\dy$/],
    ];
    for (const [output, pattern] of cases) {
      expect((await local.chat("#plain", { ...bounded, output })).choices[0]?.text).toMatch(pattern);
      expect((await local.complete("<|script:plain|>", { ...bounded, output })).choices[0]?.text).toMatch(pattern);
    }
  });

  test("a call or an answer, where both are possible", async () => {
    const tools = [weather(["Paris"])];
    const called = await local.chat("#call", { ...bounded, tools, ...json(answerSchema), parallelToolCalls: false });
    expect(calls(called)).toEqual([{ name: "get_weather", arguments: { city: "Paris" } }]);
    const answered = await local.chat("#json", { ...bounded, tools, ...json(answerSchema) });
    expect(JSON.parse(answered.choices[0]?.text ?? "")).toMatchObject({ city: "Oslo" });
  });

  test("the stream says what the whole answer says", async () => {
    const over = { ...bounded, ...json(answerSchema) };
    const whole = await local.chat("#plain", { ...over, stream: false });
    let text = "";
    for await (const batch of local.batches({ ...over, prompt: chatPrompt("#plain") })) {
      for (const event of batch as readonly GenerationEvent[]) if (event.type === "text-delta") text += event.text;
    }
    expect(text).toBe(whole.choices[0]?.text);
  });
});

describe("reasoning comes first", () => {
  test("a thought that the model opens itself is free", async () => {
    const thinking = await openProgrammed({
      chatTemplate: `{#- knows <think> and </think> -#}${programmedTemplate(Object.keys(standardScripts))}`,
    });
    try {
      const { choices } = await thinking.chat("#thought", { ...bounded, ...json(answerSchema) });
      expect(choices[0]?.reasoning).toBe("The user wants a number; forty-two will do.");
      expect(JSON.parse(choices[0]?.text ?? "")).toMatchObject({ city: "Oslo" });
      const called = await thinking.chat("#thought", {
        ...bounded,
        tools: [clock],
        toolChoice: { type: "required" },
        parallelToolCalls: false,
      });
      expect(called.choices[0]?.reasoning).toBe("The user wants a number; forty-two will do.");
      expect(calls(called)).toEqual([{ name: "clock", arguments: {} }]);
    } finally {
      await thinking.close();
    }
  });

  test("a thought that the prompt began is free, and text in the token that ends it is read first", async () => {
    const scripts = {
      greeting: { say: ["Let me", " see.\n</think", ">\n\n{", '"city"', ": 1}"] },
    };
    const template = "{% for message in messages %}{{ message.content }}{% endfor %}<think>\n";
    const opened = await openProgrammed({ chatTemplate: template, toolFormat: undefined }, { scripts });
    try {
      const { choices } = await opened.chat("Hi", { ...bounded, ...json(answerSchema) });
      expect(choices[0]?.reasoning).toBe("Let me see.");
      expect(JSON.parse(choices[0]?.text ?? "")).toMatchObject({ city: "Oslo" });
    } finally {
      await opened.close();
    }
  });
});

test("a template that knows no tools: the model is told of them, and its calls are read", async () => {
  const scripts = { greeting: { say: '{"name": "clock", "arguments": {}}' } };
  const template =
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}{% if 'clock' not in messages[0].content %}NO TOOLS{% endif %}";
  const plain = await openProgrammed({ chatTemplate: template }, { scripts });
  try {
    for (const toolChoice of [{ type: "auto" }, { type: "required" }, { type: "named", name: "clock" }] as const) {
      const generation = await plain.chat("What time is it?", { ...bounded, tools: [clock], toolChoice });
      expect(calls(generation)).toEqual([{ name: "clock", arguments: {} }]);
      expect(generation.choices[0]?.finish?.reason).toBe("tool-calls");
    }
    const forced = await plain.chat("What time is it?", {
      ...bounded,
      tools: [weather(["Oslo"]), clock],
      toolChoice: { type: "named", name: "get_weather" },
    });
    expect(calls(forced)).toEqual([{ name: "get_weather", arguments: { city: "Oslo" } }]);
  } finally {
    await plain.close();
  }
});

describe("what cannot be enforced", () => {
  const vague: JsonSchema = {
    type: "object",
    properties: { city: { const: "Oslo", not: { const: "Paris" } } },
    required: ["city"],
  };

  test("is a 400 with its path under strict", async () => {
    expect(await rejection(json(vague, true))).toMatchObject({
      status: 400,
      param: `${path}.properties.city.not`,
      code: "invalid_json_schema",
    });
    expect(await rejection({ tools: [clock, { name: "f", parameters: vague, strict: true }] })).toMatchObject({
      status: 400,
      param: "tools[1].function.parameters.properties.city.not",
      code: "invalid_function_parameters",
    });
  });

  test("is let through otherwise, with a warning, and the answer is checked", async () => {
    log.length = 0;
    const { choices } = await local.chat("#plain", { ...bounded, ...json(vague) });
    expect(JSON.parse(choices[0]?.text ?? "")).toEqual({ city: "Oslo" });
    expect(log.join("\n")).toContain(`'not' at ${path}.properties.city is not enforced`);
    await expect.poll(() => log.join("\n")).toContain("choice 0: valid");
  });

  test("malformed schemas, patterns and grammars are 400s with their paths", async () => {
    expect(await rejection(json({ type: "object", properties: { a: { type: "text" } } }))).toMatchObject({
      status: 400,
      param: `${path}.properties.a.type`,
    });
    expect(await rejection({ output: { type: "regex", pattern: "(", path: "guided_regex" } })).toMatchObject({
      status: 400,
      param: "guided_regex",
    });
    expect(await rejection({ output: { type: "grammar", gbnf: "root ::= nothing", path: "grammar" } })).toMatchObject({
      status: 400,
      param: "grammar",
    });
    expect(
      await rejection({
        tools: [{ name: "f", parameters: { type: "object", properties: { a: false }, required: ["a"] } }],
        toolChoice: { type: "required" },
      }),
    ).toMatchObject({ status: 400, param: "tools[0].function.parameters" });
    expect((await local.chat("#plain", bounded)).choices[0]?.finish?.reason).toBe("stop");
  });
});
