import addFormats from "ajv-formats";
import fc from "fast-check";
import { Ajv2020, type AnySchema } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import { Gbnf } from "../../../../test/support/gbnf.ts";
import { llamaGrammar } from "../../../../test/support/llama-grammar.ts";
import { boundedObjectSchema } from "../../../../test/support/schemas.ts";
import type { JsonSchema, Tool } from "../../../wire/core/message.ts";
import type { Format } from "../format.ts";
import { formatNamed, knownFormats } from "../known.ts";
import { callHasStarted, TextReader } from "../text-reader.ts";
import { answerGrammar, callGrammar, type CallGrammarOptions } from "./call-grammar.ts";
import type { Grammar } from "./grammar.ts";
import { GrammarBudget, type GrammarState, GrammarStates } from "./grammar-states.ts";
import { readGbnf } from "./read-gbnf.ts";
import { SchemaError } from "./grammar-errors.ts";
import { anyValue, jsonSyntax } from "./value-syntax.ts";
import { runs } from "../../../../test/support/runs.ts";

const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);

const weather: Tool = {
  name: "get_weather",
  parameters: {
    type: "object",
    properties: {
      city: { type: "string" },
      days: { type: "integer", minimum: 1, maximum: 14 },
      unit: { enum: ["celsius", "fahrenheit"] },
      hours: { type: "array", items: { type: "integer" }, maxItems: 3 },
      place: { type: "object", properties: { lat: { type: "number" }, exact: { type: "boolean" } }, required: ["lat"] },
      note: { type: ["string", "null"] },
    },
    required: ["city", "days"],
  },
};
const clock: Tool = { name: "clock" };
const forced: CallGrammarOptions = { mode: "forced", parallel: true };

/** Formats in which models make calls. */
const callingFormats = knownFormats.filter((format) => format.kind === "routed" || format.calls.length > 0);

function textsOf(gbnf: string, count: number, seed: number): string[] {
  const grammar = new Gbnf(gbnf);
  let state = seed;
  const random = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
  return Array.from({ length: count }, () => grammar.walk(random));
}

interface ReadText {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string; readonly status: string }[];
}

function read(format: Format, text: string, tools: readonly Tool[], prefix?: string): ReadText {
  let ids = 0;
  const reader = new TextReader({
    format,
    choice: 0,
    newCallId: () => `call_${ids++}`,
    tools,
    prefix: prefix ?? (format.kind === "routed" ? format.start : ""),
  });
  const calls: { name: string; arguments: string; status: string }[] = [];
  let content = "";
  let reasoning = "";
  for (const event of [...reader.push(text), ...reader.end()]) {
    if (event.type === "text-delta") content += event.text;
    else if (event.type === "reasoning-delta") reasoning += event.text;
    else if (event.type === "tool-call-start") calls.push({ name: event.name, arguments: "", status: "open" });
    const last = calls.at(-1);
    if (event.type === "tool-call-delta" && last) last.arguments += event.arguments;
    if (event.type === "tool-call-end" && last) last.status = event.status;
  }
  return { content, reasoning, calls };
}

/** All is calls, each of them of a tool and with arguments that satisfy its schema. Gives what is wrong, or null. */
function fault(format: Format, text: string, tools: readonly Tool[]): string | null {
  const { content, calls } = read(format, text, tools);
  if (content.trim() !== "") return `content: ${content}`;
  if (calls.length === 0) return "no calls";
  for (const call of calls) {
    const tool = tools.find(({ name }) => name === call.name);
    if (tool === undefined || call.status !== "succeeded") return `call: ${JSON.stringify(call)}`;
    const schema = tool.parameters ?? { type: "object", maxProperties: 0 };
    const validate = ajv.compile(schema as AnySchema);
    if (!validate(JSON.parse(call.arguments))) return `${call.arguments}: ${ajv.errorsText(validate.errors)}`;
  }
  return null;
}

describe("callGrammar", () => {
  it.each(callingFormats.map((format) => [format.id, format] as const))(
    "writes calls that the reader of %s reads, with valid arguments",
    async (_, format) => {
      const tools = [weather, clock];
      const { gbnf, widened, exact } = callGrammar(format, tools, {
        ...forced,
        prefix: format.kind === "routed" ? format.start : "",
      });
      expect(widened).toEqual([]);
      expect(exact).toBe(true);
      const theirs = await llamaGrammar(gbnf);
      for (const [i, text] of textsOf(gbnf, 6, 11).entries()) {
        expect([text, fault(format, text, tools)]).toEqual([text, null]);
        if (i < 1) expect([text, theirs.accepts(text)]).toEqual([text, true]);
      }
    },
  );

  // One of each way to write arguments.
  it.each([
    "hermes",
    "mistral-nemo",
    "apertus",
    "deepseek-v3",
    "gemma4",
    "lfm2",
    "qwen3-coder",
    "glm-4.5",
    "deepseek-v3.2",
    "minicpm5",
    "kimi-k3",
    "minimax-m3",
    "gpt-oss",
    "muse-glimmer",
  ])("holds any bounded schema in %s", (id) => {
    const format = named(id);
    fc.assert(
      fc.property(
        boundedObjectSchema(1).map(({ schema }) => schema),
        fc.integer({ min: 1, max: 2 ** 30 }),
        (schema, seed) => {
          const tools: readonly Tool[] = [{ name: "f", parameters: schema }];
          let made;
          try {
            made = callGrammar(format, tools, { ...forced, parallel: false });
          } catch (error) {
            // Some syntaxes cannot write some names of parameters, and say so.
            if (error instanceof SchemaError) return;
            throw error;
          }
          if (!made.exact) return;
          for (const text of textsOf(made.gbnf, 3, seed)) {
            const wrong = fault(format, text, tools);
            if (wrong !== null) throw new Error(`${text}\n${wrong}`);
            expect(read(format, text, tools).calls).toHaveLength(1);
          }
        },
      ),
      runs(3),
    );
  });

  const accepted: readonly (readonly [string, readonly string[]])[] = [
    ["hermes", ['<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}\n</tool_call>']],
    [
      "llama3-json",
      [
        '{"name": "get_weather", "parameters": {"city": "Oslo", "days": 2}}',
        '<|python_tag|>{"name": "clock", "parameters": {}}; {"name": "clock", "parameters": {}}',
      ],
    ],
    [
      "qwen3-coder",
      [
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        "<tool_call>\n<function=clock>\n</function>\n</tool_call>",
      ],
    ],
    [
      "mistral-nemo",
      ['[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}, "id": "abcdefgh1"}]'],
    ],
    [
      "mistral-v11",
      [
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Oslo", "days": 2}',
        "[TOOL_CALLS]clock[CALL_ID]000000001[ARGS]{}[TOOL_CALLS]clock[ARGS]{}",
      ],
    ],
    [
      "deepseek-v3",
      [
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n{"city":"Oslo","days":2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      ],
    ],
    [
      "deepseek-v3.1",
      ["<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>clock<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"],
    ],
    [
      "deepseek-v3.2",
      [
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Oslo</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
      ],
    ],
    [
      "kimi-k2",
      [
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>{"city": "Oslo", "days": 1}<|tool_call_end|><|tool_calls_section_end|>',
      ],
    ],
    [
      "glm-4.5",
      [
        "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
      ],
    ],
    [
      "glm-4.7",
      [
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>days</arg_key><arg_value>3</arg_value></tool_call>",
        "<tool_call>clock</tool_call>",
      ],
    ],
    ["gemma4", ['<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:3}<tool_call|>']],
    [
      "lfm2",
      [
        '<|tool_call_start|>[get_weather(city="Oslo", days=3, place={"lat": 1.5, "exact": True}), clock()]<|tool_call_end|>',
      ],
    ],
    ["olmo3", ['<function_calls>get_weather(city="Oslo", days=3)\nclock()</function_calls>']],
    [
      "gpt-oss",
      ['<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo","days":3}'],
    ],
    ["functionary-v3.2", ['get_weather\n{"city": "Oslo", "days": 3}', "clock\n{}>>>clock\n{}"]],
    [
      "command-r7b",
      ['<|START_ACTION|>[\n {"tool_call_id": "0", "tool_name": "clock", "parameters": {}}\n]<|END_ACTION|>'],
    ],
    ["command-r-plus", ['Action:\n```json\n[{"tool_name": "clock", "parameters": {}}]\n```']],
    ["apertus", ['<|tools_prefix|>[{"get_weather": {"city": "Oslo", "days": 2}}]<|tools_suffix|>']],
    [
      "kimi-k3",
      [
        '<|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
      ],
    ],
    [
      "minimax-m3",
      [
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[<days>2]<]minimax[>[</days>]<]minimax[>[<place>]<]minimax[>[<lat>1.5]<]minimax[>[</lat>]<]minimax[>[</place>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
      ],
    ],
    ["generic-json", ['{"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}']],
  ];

  it.each(accepted)("takes calls as models of %s write them", async (id, texts) => {
    const format = named(id);
    const gbnf = callGrammar(format, [weather, clock], forced).gbnf;
    const theirs = await llamaGrammar(gbnf);
    for (const text of texts) {
      expect([text, new Gbnf(gbnf).accepts(text), theirs.accepts(text)]).toEqual([text, true, true]);
      expect([text, fault(format, text, [weather, clock])]).toEqual([text, null]);
    }
  });

  it("names only the tools that it is given, and allows no second call where there may be one", () => {
    const one = new Gbnf(callGrammar(named("hermes"), [clock], { ...forced, parallel: false }).gbnf);
    const call = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>';
    expect(one.accepts(call)).toBe(true);
    expect(one.accepts(`${call}\n${call}`)).toBe(false);
    expect(one.accepts(call.replace("clock", "get_weather"))).toBe(false);
    const several = new Gbnf(callGrammar(named("hermes"), [clock], forced).gbnf);
    expect(several.accepts(`${call}\n${call}`)).toBe(true);
    expect(several.accepts(`${call} and so on`)).toBe(false);
  });

  it("allows reasoning before the calls if the model may open it", () => {
    const call = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>';
    const grammar = callGrammar(named("hermes"), [clock], { ...forced, front: "reasoning" }).gbnf;
    expect(new Gbnf(grammar).accepts(`<think>\nHmm. </thin> <b>\n</think>\n\n${call}`)).toBe(true);
    expect(new Gbnf(grammar).accepts(call)).toBe(true);
    expect(new Gbnf(grammar).accepts(`Hmm. ${call}`)).toBe(false);
    const routed = named("gpt-oss");
    const prefix = "<|start|>assistant";
    const harmony = callGrammar(routed, [clock], { ...forced, prefix, front: "reasoning" }).gbnf;
    const text =
      "<|channel|>analysis<|message|>Hmm.<|end|><|start|>assistant<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}";
    expect(new Gbnf(harmony).accepts(text)).toBe(true);
    expect(read(routed, text, [clock], prefix)).toMatchObject({ reasoning: "Hmm.", calls: [{ name: "clock" }] });
  });

  it("takes an answer in JSON as well as a call, where both will do", () => {
    const schema: JsonSchema = { type: "object", properties: { a: { const: 1 } }, required: ["a"] };
    const { gbnf } = callGrammar(named("hermes"), [clock], {
      ...forced,
      orAnswer: { schema, path: "response_format" },
    });
    const ours = new Gbnf(gbnf);
    expect(ours.accepts('{"a": 1}')).toBe(true);
    expect(ours.accepts('<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>')).toBe(true);
    expect(ours.accepts('{"a": 2}')).toBe(false);
  });

  it("reports assertions that the grammar does not enforce and values that a syntax cannot distinguish, with the path", () => {
    const tool: Tool = {
      name: "f",
      parameters: {
        type: "object",
        properties: { a: { not: { const: 1 } }, b: { type: ["string", "integer"], maximum: 3 } },
      },
    };
    expect(callGrammar(named("hermes"), [clock, tool], forced).widened).toEqual([
      { path: "tools[1].function.parameters.properties.a", keyword: "not" },
    ]);
    expect(callGrammar(named("qwen3-coder"), [tool], forced).widened).toEqual([
      { path: "tools[0].function.parameters.properties.a", keyword: "not" },
      { path: "tools[0].function.parameters.properties.b", keyword: "type" },
    ]);
  });

  it("refuses a tool that a syntax cannot call", () => {
    const tool: Tool = {
      name: "f",
      parameters: { type: "object", properties: { "a b": { type: "string" } }, required: ["a b"] },
    };
    expect(() => callGrammar(named("pythonic"), [clock, tool], forced)).toThrow(/no call of 'f'/);
    expect(() => callGrammar(named("hermes"), [tool], forced)).not.toThrow();
  });

  it("does not let one tool's definitions become another's", () => {
    const own = (type: string): Tool => ({
      name: type,
      parameters: { type: "object", properties: { a: { $ref: "#/$defs/x" } }, required: ["a"], $defs: { x: { type } } },
    });
    const ours = new Gbnf(callGrammar(named("hermes"), [own("integer"), own("boolean")], forced).gbnf);
    expect(ours.accepts('<tool_call>{"name": "boolean", "arguments": {"a": true}}</tool_call>')).toBe(true);
    expect(ours.accepts('<tool_call>{"name": "boolean", "arguments": {"a": 1}}</tool_call>')).toBe(false);
  });
});

describe("a lazy grammar", () => {
  it.each(
    callingFormats
      .filter((format) => format.kind === "routed" || format.calls[0]?.open)
      .map((format) => [format.id, format] as const),
  )("goes on from wherever the reader of %s sees a call", (_, format) => {
    const tools = [weather, clock];
    const prefix = format.kind === "routed" ? format.start : "";
    const { gbnf } = callGrammar(format, tools, { mode: "lazy", parallel: true, prefix });
    for (const text of textsOf(callGrammar(format, tools, { ...forced, prefix }).gbnf, 4, 5)) {
      // A call without its marker, where it may miss, is certain only with its name or at its end.
      const opener = format.kind === "plain" ? (format.section?.open[0] ?? format.calls[0]?.open?.[0] ?? "") : "";
      if (!text.trimStart().startsWith(opener)) continue;
      const reader = new TextReader({ format, choice: 0, newCallId: () => "call", tools, prefix });
      let begun = -1;
      for (let i = 0; i < text.length && begun < 0; i++) {
        reader.push(text[i] ?? "");
        if (callHasStarted(format, reader)) begun = i + 1;
      }
      expect([text, begun > 0]).toEqual([text, true]);
      const rest = stateAfter(gbnf, reader.openCall ?? "");
      expect([text.slice(0, begun), reader.openCall, rest === null]).toEqual([
        text.slice(0, begun),
        reader.openCall,
        false,
      ]);
      expect(readOn(rest, text.slice(begun).trimEnd())?.mayEnd).toBe(true);
    }
  });

  it("leaves the arguments of tools alone that need not be followed", () => {
    const { gbnf } = callGrammar(named("hermes"), [weather, clock], {
      mode: "lazy",
      parallel: false,
      isFree: (tool) => tool.name === "get_weather",
    });
    const ours = new Gbnf(gbnf);
    expect(ours.accepts('<tool_call>{"name": "get_weather", "arguments": {"x": [1]}}</tool_call>')).toBe(true);
    expect(ours.accepts('<tool_call>{"name": "clock", "arguments": {"x": [1]}}</tool_call>')).toBe(false);
  });
});

describe("a text that is calls, or none", () => {
  it("is recognized by its beginning", () => {
    const { gbnf } = callGrammar(named("pythonic"), [weather], { mode: "either", parallel: false });
    const ours = new Gbnf(gbnf);
    for (const text of ['[get_weather(city="Oslo", days=3)]', "Hello [1]!", "", "\nHm."])
      expect([text, ours.accepts(text)]).toEqual([text, true]);
    for (const text of ['[get_weather(city="Oslo", days=33)]', "[1] says so."])
      expect([text, ours.accepts(text)]).toEqual([text, false]);
  });
});

describe("the state after a text", () => {
  it("allows the rest of a grammar, for every cut of every text", () => {
    fc.assert(
      fc.property(
        boundedObjectSchema(1),
        fc.integer({ min: 1, max: 2 ** 30 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        ({ schema }, seed, at) => {
          const { gbnf } = callGrammar(named("hermes"), [{ name: "f", parameters: schema }], forced);
          const [text = ""] = textsOf(gbnf, 1, seed);
          const characters = [...text];
          const cut = Math.floor(at * characters.length);
          const rest = stateAfter(gbnf, characters.slice(0, cut).join(""));
          if (rest === null) throw new Error(`cut at ${cut}: ${text}`);
          expect(readOn(rest, characters.slice(cut).join(""))?.mayEnd).toBe(true);
          expect(readOn(rest, "\u0000")).toBeNull();
        },
      ),
      runs(10),
    );
  });
});

describe("answerGrammar", () => {
  it("puts an answer after the header of a routed format, and after reasoning", () => {
    const build = (grammar: Grammar): ReturnType<typeof anyValue> => anyValue(grammar, jsonSyntax(grammar), "object");
    const harmony = answerGrammar(named("gpt-oss"), build, { prefix: "<|start|>assistant" });
    expect(new Gbnf(harmony).accepts('<|channel|>final<|message|>{"a":1}')).toBe(true);
    const after = answerGrammar(named("hermes"), build, { front: "end-of-reasoning" });
    expect(new Gbnf(after).accepts('\n\n{"a":1}')).toBe(true);
    const plain = answerGrammar(named("hermes"), build, {});
    expect(new Gbnf(plain).accepts('\n\n{"a":1}')).toBe(false);
  });
});

function named(id: string): Format {
  const format = formatNamed(id);
  if (format === undefined) throw new Error(`no format ${id}`);
  return format;
}

const budget = new GrammarBudget(Infinity);

function stateAfter(gbnf: string, text: string): GrammarState | null {
  const { root } = readGbnf(gbnf, { depth: Infinity, elements: Infinity });
  return readOn(new GrammarStates(root).start(budget), text);
}

function readOn(state: GrammarState | null, text: string): GrammarState | null {
  return state?.read(new TextEncoder().encode(text), budget) ?? null;
}
