import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { llamaGrammar } from "../../../test/support/llama-grammar.ts";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { Tool } from "../../wire/core/message.ts";
import type { NamedCall, PlainFormat, TaggedArgs } from "./format.ts";
import { callGrammar } from "./grammar/call-grammar.ts";
import { GrammarBudget, GrammarStates } from "./grammar/grammar-states.ts";
import { readGbnf } from "./grammar/read-gbnf.ts";
import { knownFormats } from "./known.ts";
import { readFormat } from "./read-format.ts";
import { TextReader } from "./text-reader.ts";
import { writeCall } from "./write-call.ts";
import { runs } from "../../../test/support/runs.ts";

const note: Tool = {
  name: "write_note",
  parameters: {
    type: "object",
    properties: { path: { type: "string" }, content: { type: "string" } },
    required: ["path", "content"],
  },
};

/** A format with tagged values, and its syntax. */
interface Tagged {
  readonly format: PlainFormat;
  readonly call: NamedCall;
  readonly args: TaggedArgs;
}

/** As in docs/formats.md. */
const ownFormat = readFormat({
  kind: "plain",
  id: "tags of a user",
  section: { open: "<calls>", close: ["</calls>"] },
  calls: [
    {
      form: "named",
      open: '<call name="',
      close: "</call>",
      headEnd: '">',
      args: { kind: "tagged", open: '<arg name="', keyEnd: '">', close: "</arg>" },
    },
  ],
});

function taggedOf(format: (typeof knownFormats)[number]): Tagged[] {
  const [call] = format.kind === "plain" ? format.calls : [];
  if (format.kind !== "plain" || call?.form !== "named" || call.args.kind !== "tagged") return [];
  return [{ format, call, args: call.args }];
}

const all = [...knownFormats, ownFormat].flatMap(taggedOf).map((tagged) => [tagged.format.id, tagged] as const);

interface Read {
  readonly content: string;
  readonly calls: readonly (readonly [name: string, args: unknown, status: string | null])[];
}

function read(format: PlainFormat, chunks: Iterable<string>, tools: readonly Tool[] = [note], cut = false): Read {
  const reader = new TextReader({ format, choice: 0, newCallId: () => "call", tools });
  const events = [...chunks].flatMap((chunk) => reader.push(chunk));
  const choice = accumulate([...events, ...reader.end(cut)]).choices[0];
  return {
    content: choice?.text ?? "",
    calls: (choice?.toolCalls ?? []).map(({ name, arguments: json, status }) => [name, valueOf(json), status]),
  };
}

function valueOf(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

function written(format: PlainFormat, values: Readonly<Record<string, unknown>>, name = note.name): string {
  return writeCall(format, { name, arguments: values }) ?? "";
}

/** The parts of a format's syntax, for values that contain them. */
function partsOf({ format, call, args }: Tagged, key: string) {
  const head = (name: string): string => {
    const attribute = args.hint === undefined ? "" : ` ${args.hint.attribute}="${args.hint.string}"`;
    return args.open + name + args.keyEnd + attribute + (args.tagEnd ?? "") + (args.valueOpen ?? "");
  };
  const close = args.close.replace("{key}", key);
  const end = [call.close?.[0], format.section?.close[0]].filter((marker) => marker !== undefined).join("\n");
  const nested = written(format, { name: "Bob", age: "3" }, "greet");
  return { head, close, end, nested };
}

describe.each(all)("%s", (_, tagged) => {
  const { format, call, args } = tagged;
  const { head, close, end, nested } = partsOf(tagged, "content");
  const edge = args.trim === "newline" ? "\n" : "";

  // A value ended at the first close, so a sentence about the close was cut and the call was reported as succeeded; a file was written
  // without the rest. No test had a value with the markers of its own format.
  test.each(
    Object.entries({
      "its close in a sentence": `Close it with ${close} each time.`,
      "its close at the beginning": `${close} ends a value.`,
      "its close twice": `${close}${close} twice, ${close} once.`,
      "a parameter's head in a sentence": `Write ${head("name")} first.`,
      "a declared parameter's head in a sentence": `Write ${args.open}path${args.keyEnd} first.`,
      "a line with a parameter's head": `a\n${args.open}name${args.keyEnd}\nb`,
      "the end of a call": `a\n${end}`,
      "a whole end": `a\n${close}\n${end}\nb`,
      "two whole ends": `a\n${close}\n${end}\nb\n${close}\n${end}\nc`,
      "a whole call": `Like this:\n${nested}\nDone.`,
      "only a whole call": nested,
      "two whole calls": `${nested}\n${nested}`,
      "calls in a row, and text": `${nested}${nested} and so on`,
      "a call's opener in a sentence": `It begins with ${call.open?.[0]}f${call.headEnd[0]} as usual.`,
      HTML: '<ul>\n  <li class="a">x</li>\n</ul>\n',
      "a patch": `--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x ${close}\n+y ${close};\n`,
      "a line end at each end": "\nx\n",
      "white space alone": " \t\n ",
      nothing: "",
    }),
  )("a value holds %s", (_name, content) => {
    for (const arguments_ of [
      { path: "a.md", content },
      { content, path: "a.md" },
    ]) {
      const text = written(format, arguments_);
      const expected: Read = { content: "", calls: [[note.name, arguments_, "succeeded"]] };
      expect(read(format, [text])).toEqual(expected);
      expect(read(format, text)).toEqual(expected);
    }
  });

  test("two values hold each other's syntax, and so does a second call", () => {
    const path = `${head("content")} ${close}x`;
    const content = `${close} then\n${close}, ${head("path")}`;
    const one = written(format, { path, content });
    const text = `${one}\n${one}`;
    const calls = Array.from({ length: 2 }, () => [note.name, { path, content }, "succeeded"]);
    // With a section around all calls, the second section is one of its own.
    expect(read(format, [text]).calls).toEqual(calls);
    expect(read(format, text).calls).toEqual(calls);
  });

  test("text and further calls after a call are not part of it", () => {
    const one = written(format, { path: "a", content: "b" });
    const got = {
      content: "\nSo far.\n",
      calls: [1, 2].map(() => [note.name, { path: "a", content: "b" }, "succeeded"]),
    };
    for (const chunks of [[`${one}\nSo far.\n${one}`], `${one}\nSo far.\n${one}`]) {
      const { content, calls } = read(format, chunks);
      expect([content.trim(), calls]).toEqual([got.content.trim(), got.calls]);
    }
    expect(read(format, `${one}\nDone.`).content.trim()).toBe("Done.");
    expect(read(format, `${one}\nDone.`).calls).toEqual(got.calls.slice(1));
  });

  test("missing and doubled closes are read", () => {
    const ends = args.close.replace("{key}", "path");
    const text = written(format, { path: "a.md", content: "x" });
    const expected = [[note.name, { path: "a.md", content: "x" }, "succeeded"]];
    expect(read(format, text.replace(edge + ends, `${ends}\n${ends}\n`)).calls).toEqual(expected);
    if (args.strict === true) return;
    // The last close is missing, and then the close of the call, too.
    const last = text.lastIndexOf(edge + close);
    expect(read(format, text.slice(0, last) + edge + text.slice(last + edge.length + close.length)).calls).toEqual(
      expected,
    );
    expect(read(format, text.slice(0, last)).calls).toEqual(expected);
    // The close before a parameter on a line of its own.
    if (args.nestedItem === undefined) {
      expect(read(format, text.replace(edge + ends, "\n")).calls).toEqual(expected);
    }
  });

  test("the message does not depend on how the text is cut, and nothing that was sent is taken back", () => {
    fc.assert(
      fc.property(valuesOf(tagged), fc.boolean(), fc.boolean(), (content, lastMissing, cut) => {
        const text = written(format, { path: "a.md", content });
        const whole = lastMissing ? text.slice(0, text.lastIndexOf(close)) : text;
        const expected = read(format, [whole], [note], cut);
        expect(read(format, whole, [note], cut)).toEqual(expected);
        expect(read(format, whole.match(/[^]{1,7}/g) ?? [], [note], cut)).toEqual(expected);
      }),
      runs(10),
    );
  });
});

/** Values of the format's own markers and other text, in any order. */
function valuesOf(tagged: Tagged, key = "content"): fc.Arbitrary<string> {
  const { format, call, args } = tagged;
  const { head, close, nested } = partsOf(tagged, key);
  const parts = [
    close,
    close.slice(0, -1),
    args.open,
    `${args.open}/`,
    head("name"),
    head("path"),
    head(key),
    `\n${head("path")}\n`,
    nested,
    ...(call.open ?? []),
    ...(call.close ?? []),
    ...(format.section?.open ?? []),
    ...(format.section?.close ?? []),
    `${call.open?.[0]}greet${call.headEnd[0]}${call.tagEnd ?? ""}`,
    "<![CDATA[",
    "]]>",
    "<b>",
    "</b>",
    "{",
    '"x"',
    "a",
    "name",
    "path",
    ">",
    "<",
    "/",
    " ",
    "\n",
    "\n\n",
    "\t",
    "é",
    "😀",
  ];
  return fc.array(fc.constantFrom(...parts), { maxLength: 12 }).map((texts) => texts.join(""));
}

/**
 * Values with closes, and either with whole calls or with closes of a call. After a close of a call, the grammar allows no call: directly
 * after it, it would be the next call. The parser can tell in some cases.
 */
function sentencesOf(tagged: Tagged): fc.Arbitrary<string> {
  const { format, call } = tagged;
  const { head, close, nested } = partsOf(tagged, "content");
  const words = [
    close,
    `${close} `,
    `${close}\n`,
    `${close}.`,
    `see ${head("name")} first`,
    "<b>",
    "</b>",
    "a",
    "b ",
    " ",
    "\n",
    "é",
    "😀",
    "<",
    ">",
    "</",
    '"x"',
  ];
  const closes = [...(call.close ?? []), ...(format.section?.close ?? [])];
  const text = (parts: readonly string[]): fc.Arbitrary<string> =>
    fc.array(fc.constantFrom(...parts), { maxLength: 10 }).map((texts) => texts.join(""));
  return fc.oneof(text([...words, ...closes]), text([...words, `\n${nested}\n`]));
}

const budget = new GrammarBudget(Infinity);

/** Whether texts are in a grammar, by our own matcher. */
function matcher(gbnf: string): (text: string) => boolean {
  const { root } = readGbnf(gbnf, { depth: Infinity, elements: Infinity });
  const start = new GrammarStates(root).start(budget);
  return (text) => start?.read(new TextEncoder().encode(text), budget)?.mayEnd === true;
}

describe.each(all)("the grammar of %s", (_, tagged) => {
  const { format } = tagged;
  const { gbnf } = callGrammar(format, [note], { mode: "forced", parallel: true });
  const accepts = matcher(gbnf);
  const isReadBack = (text: string, content: string): boolean => {
    const { content: shown, calls } = read(format, [text]);
    return (
      shown === "" && JSON.stringify(calls) === JSON.stringify([[note.name, { path: "a.md", content }, "succeeded"]])
    );
  };

  // The grammar allowed no close in a value: a model that wrote such a value was forced into another one.
  test("allows only values that are read back", () => {
    fc.assert(
      fc.property(valuesOf(tagged), (content) => {
        const text = written(format, { path: "a.md", content });
        if (accepts(text)) expect([text, isReadBack(text, content)]).toEqual([text, true]);
      }),
      runs(60),
    );
  });

  test("allows what is read back, of text with closes, heads and whole calls", () => {
    let allowed = 0;
    fc.assert(
      fc.property(sentencesOf(tagged), (content) => {
        const text = written(format, { path: "a.md", content });
        expect([text, accepts(text)]).toEqual([text, isReadBack(text, content)]);
        if (accepts(text)) allowed++;
      }),
      runs(60),
    );
    expect(allowed).toBeGreaterThan(5);
  });

  test("is the same for llama.cpp", async () => {
    const { close, end, nested, head } = partsOf(tagged, "content");
    const theirs = await llamaGrammar(gbnf);
    const contents = [
      `a ${close} b`,
      `a\n${close}\n${end}\nb`,
      `${nested}.`,
      `${close}\n`,
      `a${close}${head("path")}b`,
    ];
    for (const content of contents) {
      const text = written(format, { path: "a.md", content });
      expect([text, theirs.accepts(text)]).toEqual([text, accepts(text)]);
    }
    expect(accepts(written(format, { path: "a.md", content: `a ${close} b` }))).toBe(true);
  });

  test("allows values other than strings as they are written", () => {
    const tool: Tool = { name: "f", parameters: { type: "object", properties: { list: { type: "array" } } } };
    const { close, end, nested } = partsOf(tagged, "list");
    const values = { list: ["x", close, `a ${close}\n${end}`, { a: nested }] };
    const text = written(format, values, "f");
    expect(matcher(callGrammar(format, [tool], { mode: "forced", parallel: false }).gbnf)(text)).toBe(true);
    expect(read(format, [text], [tool]).calls).toEqual([["f", values, "succeeded"]]);
  });
});

describe("a format whose closes contain the name of the parameter", () => {
  const m3 = namedTagged("minimax-m3");
  const { format } = m3;

  // The grammar allowed no tag in such a value, because the rules for each name would have been too many.
  test.each(["i", "in", "invoker", "tool_call_id", "tool", "café", "😀", "long_".repeat(50), "invoke", "a]", "]"])(
    "a parameter with the name %s",
    async (key) => {
      const schema = { type: "object", properties: { path: { type: "string" }, [key]: { type: "string" } } } as const;
      const tool: Tool = { name: note.name, parameters: { ...schema, required: ["path", key] } };
      const { gbnf } = callGrammar(format, [tool], { mode: "forced", parallel: true });
      const accepts = matcher(gbnf);
      const theirs = await llamaGrammar(gbnf);
      const isReadBack = (text: string, values: object): boolean =>
        JSON.stringify(read(format, [text], [tool]).calls) === JSON.stringify([[note.name, values, "succeeded"]]);
      const { close, end, nested } = partsOf(m3, key);
      // Names that are a close of the format, or that a tag may begin in, are rare: their values contain no tag.
      const allowsTags = key !== "invoke" && !key.includes("]");
      for (const [content, isMarked] of [
        ["a b\n", false],
        [`a ${close} b`, true],
        [`a ${close.slice(0, -1)}`, true],
        [`a${end} ${close}b`, true],
        [`${nested} and\n${nested}`, true],
        [`begins with ]<]minimax[>[<invoke name="f">`, true],
        [`begins with ]<]minimax[>[<invoke name="f]<]minimax[>[</invoke>`, true],
      ] as const) {
        const values = { path: "a.md", [key]: content };
        const text = written(format, values);
        const isAllowed = allowsTags || !isMarked;
        expect([text, accepts(text), theirs.accepts(text)]).toEqual([text, isAllowed, isAllowed]);
        if (key !== "invoke") expect([text, isReadBack(text, values)]).toEqual([text, true]);
      }
      fc.assert(
        fc.property(valuesOf(m3, key), (content) => {
          const values = { path: "a.md", [key]: content };
          const text = written(format, values);
          if (accepts(text)) expect([text, isReadBack(text, values)]).toEqual([text, true]);
        }),
        runs(30),
      );
    },
  );

  // The close of such a parameter is the close of the section, and the parser reads it as that.
  test("no call has a parameter with the name of the section", () => {
    const parameters = {
      type: "object",
      properties: { tool_call: { type: "string" } },
      required: ["tool_call"],
    } as const;
    const options = { mode: "forced", parallel: false } as const;
    expect(() => callGrammar(format, [{ name: "f", parameters }], options)).toThrow(/no call of 'f'/);
  });

  test("a listed value may contain tags", () => {
    const { close } = partsOf(m3, "content");
    const listed = [`a ${close} b`, `a ${close}]<]minimax[>[<path>`];
    const tool: Tool = {
      name: "f",
      parameters: { type: "object", properties: { content: { type: "string", enum: listed } }, required: ["content"] },
    };
    const accepts = matcher(callGrammar(format, [tool], { mode: "forced", parallel: false }).gbnf);
    expect(listed.map((content) => accepts(written(format, { content }, "f")))).toEqual([true, false]);
    expect(accepts(written(format, { content: "a" }, "f"))).toBe(false);
  });

  test("each name adds few rules", () => {
    const rules = (count: number): readonly string[] => {
      const names = Array.from({ length: count }, (_, i) => `parameter_${i}`);
      const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
      const tool: Tool = { name: "f", parameters: { type: "object", properties, required: names } };
      return callGrammar(format, [tool], { mode: "forced", parallel: false }).gbnf.split("\n");
    };
    const [few, many] = [rules(10), rules(60)];
    // An automaton of its own would have about 400.
    expect((many.length - few.length) / 50).toBeLessThan(20);
    expect(many.join("\n").length).toBeLessThan(200_000);
  });
});

const qwen = namedTagged("qwen3.5").format;

function namedTagged(name: string): Tagged {
  const tagged = all.find(([id]) => id === name)?.[1];
  if (tagged === undefined) throw new Error(`no format with tagged values: ${name}`);
  return tagged;
}

// The call ended at a parameter without a name, as succeeded, and the rest of its markup was visible text.
test("a parameter without a name is dropped, the rest is read, and the call has failed", () => {
  const one = (body: string): string => `<tool_call>\n<function=write_note>\n${body}</function>\n</tool_call>`;
  const path = "<parameter=path>\na.md\n</parameter>\n";
  const nameless = "<parameter=\nsix </parameter> shelves\n</parameter>\n";
  for (const body of [path + nameless, nameless + path, nameless + path + nameless]) {
    for (const chunks of [[one(body)], one(body)]) {
      expect(read(qwen, chunks)).toEqual({
        content: "",
        calls: [["write_note", { path: "a.md" }, "failed"]],
      });
    }
  }
  const sentence = "Between </parameter> <parameter= and > is nothing.";
  expect(read(qwen, [written(qwen, { path: "a", content: sentence })]).calls).toEqual([
    ["write_note", { path: "a", content: sentence }, "succeeded"],
  ]);
});

test("a text that is cut inside a value does not end it at a close that it contains", () => {
  const begun = "<tool_call>\n<function=write_note>\n<parameter=content>\nEnd with </function>";
  for (const text of [`${begun} or </tool_call> and`, `${begun}\n</tool_call> and`]) {
    const [call] = read(qwen, [text], [note], true).calls;
    expect(call?.[2]).toBe("failed");
    expect(String(call?.[1])).toContain("</tool_call> and");
  }
});

// `"red"` was the string with its quotes, which no `enum` lists.
test("a listed value in quotes or white space is the listed one, and no other text is changed", () => {
  const listed = { enum: ["red", "light green", '"quoted"'] };
  const tool = (schema: unknown): Tool => ({
    name: "paint",
    parameters: { type: "object", properties: { color: schema } } as Tool["parameters"],
  });
  const color = (text: string, schema: unknown): unknown => {
    const call = `<tool_call>\n<function=paint>\n<parameter=color>\n${text}\n</parameter>\n</function>\n</tool_call>`;
    const values = [[call], call].map((chunks) => read(qwen, chunks, [tool(schema)]).calls[0]?.[1]);
    expect(values[1]).toEqual(values[0]);
    return (values[0] as { color?: unknown }).color;
  };
  for (const schema of [{ type: "string", ...listed }, listed, { anyOf: [listed, { const: null }] }]) {
    expect(color('"red"', schema)).toBe("red");
    expect(color("'light green'", schema)).toBe("light green");
    expect(color(" red ", schema)).toBe("red");
    expect(color('"quoted"', schema)).toBe('"quoted"');
    expect(color('"blue"', schema)).toBe('"blue"');
  }
  expect(color('"red"', { type: "string" })).toBe('"red"');
  expect(color('"red"', { anyOf: [listed, { type: "string" }] })).toBe('"red"');
  expect(color("null", { anyOf: [listed, { const: null }] })).toBe(null);
});

// Reasoning that a call interrupted and that went on became visible text, with its closing marker.
test("reasoning that goes on after a call is reasoning, where its close shows it", () => {
  const call = "<tool_call>\n<function=write_note>\n<parameter=path>\na.md\n</parameter>\n</function>\n</tool_call>";
  const parts = (text: string, separateReasoning = true) => {
    const all = [[text], text].map((chunks) => {
      const options = { format: qwen, choice: 0, newCallId: () => "call", tools: [note], separateReasoning };
      const reader = new TextReader({ ...options, prefix: "<think>\n" });
      const events = [...chunks].flatMap((chunk) => reader.push(chunk));
      const choice = accumulate([...events, ...reader.end()]).choices[0];
      return [choice?.reasoning, choice?.toolCalls?.length ?? 0, choice?.text];
    });
    expect(all[1]).toEqual(all[0]);
    return all[0];
  };
  expect(parts(`I could do\n${call}\nbut no.\n</think>\n\nDone.`)).toEqual(["I could do\nbut no.", 1, "Done."]);
  expect(parts(`I do\n${call}\n</think>\n\nDone.`)).toEqual(["I do", 1, "Done."]);
  expect(parts(`I do\n${call}</think>Done.`)).toEqual(["I do", 1, "Done."]);
  expect(parts(`I do\n${call}\nDone.`)).toEqual(["I do", 1, "\nDone."]);
  expect(parts("Use (<tool_call>) here.</think>Done.")).toEqual(["Use (<tool_call>) here.", 0, "Done."]);
  // Without separation, every character of it is content.
  expect(parts(`I do${call}no.</think>Done.`, false)).toEqual([null, 1, "<think>\nI dono.</think>Done."]);
});

test("values are read in linear time, whatever they contain", () => {
  const size = 20_000;
  const cpu = (tagged: Tagged, unit: string, length: number, closed: boolean): number => {
    const content = unit.repeat(Math.ceil(length / unit.length));
    const text = written(tagged.format, { path: "a.md", content });
    const whole = closed ? text : text.slice(0, text.lastIndexOf(partsOf(tagged, "content").close));
    const from = process.cpuUsage();
    read(tagged.format, whole.match(/[^]{1,50}/g) ?? []);
    const { user, system } = process.cpuUsage(from);
    return (user + system) / 1000;
  };
  for (const id of ["qwen3.5", "glm-4.5", "deepseek-v3.2", "minimax-m3", "tags of a user"]) {
    const tagged = namedTagged(id);
    const { call, args } = tagged;
    const { head, close, end, nested } = partsOf(tagged, "content");
    const opener = `${call.open?.[0]}greet${call.headEnd[0]}${call.tagEnd ?? ""}`;
    const units = [
      close,
      `${close} `,
      `${close}\n${end}\n`,
      `${close}\n${end} x`,
      end,
      `${end}x`,
      `\n${head("name")}\n`,
      args.open,
      `${close}\n${args.open}`,
      `\n${args.open}path`,
      opener,
      `${opener}\n${head("a")}`,
      nested,
      nested.slice(0, -5),
      `${nested.slice(0, -end.length)}`,
      `${opener}${close}${end}`,
      " ",
      "\n",
      "<",
      `${close}x${opener}`,
    ];
    for (const unit of units) {
      for (const closed of [true, false]) {
        const least = cpu(tagged, unit, size, closed);
        const more = cpu(tagged, unit, 4 * size, closed);
        // Four times the text; quadratic, it would be sixteen times the work, and seconds instead of a part of one.
        expect([id, unit, closed, more < 10 * least + 200]).toEqual([id, unit, closed, true]);
      }
    }
  }
});
