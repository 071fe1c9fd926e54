import { describe, expect, test } from "vitest";
import { orderViolation } from "../../../../test/upstream/legal-order.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GeneratedCall, Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import type { AnswerReaderOptions } from "../source-port.ts";
import { chatReader } from "./read.ts";

interface Read extends Generation {
  readonly events: readonly GenerationEvent[];
  readonly repairs: readonly string[];
}

/** Reads a stream in one piece and byte by byte; both must tell the same, in the waist's order. */
function read(stream: string, options: Partial<AnswerReaderOptions> = {}): Read {
  const whole = readPieces([stream], options);
  const bytes = new TextEncoder().encode(stream);
  const single = readPieces(
    Array.from(bytes, (_, i) => bytes.slice(i, i + 1)),
    options,
  );
  expect(single.events).toEqual(whole.events);
  return whole;
}

function readPieces(pieces: Iterable<string | Uint8Array>, options: Partial<AnswerReaderOptions>): Read {
  let made = 0;
  const reader = chatReader({ newCallId: () => `call_made_${made++}`, ...options });
  const events: GenerationEvent[] = [];
  for (const piece of pieces) events.push(...reader.push(piece));
  events.push(...reader.end());
  expect(orderViolation(events)).toBeNull();
  return { ...accumulate(events), events, repairs: reader.repairs.list().map(({ id }) => id) };
}

const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1700000000, model: "m" };
type Members = Record<string, unknown>;

function chunk(choice: Members | null, rest: Members = {}): string {
  const choices = choice ? [{ index: 0, delta: {}, finish_reason: null, ...choice }] : [];
  return `data: ${JSON.stringify({ ...envelope, choices, ...rest })}\n\n`;
}
const delta = (members: Members, rest: Members = {}): string => chunk({ delta: members }, rest);
const call = (...calls: Members[]): string => delta({ tool_calls: calls });
const finish = (reason: string | null, rest: Members = {}): string => chunk({ finish_reason: reason }, rest);
const done = "data: [DONE]\n\n";
const role = delta({ role: "assistant" });
const hello = role + delta({ content: "Hel" }) + delta({ content: "lo" });

const text = (generation: Generation): string | null | undefined => generation.choices[0]?.text;
const reason = (generation: Generation): string | undefined => generation.choices[0]?.finish?.reason;
const callsOf = (generation: Generation): Omit<GeneratedCall, "kind">[] =>
  (generation.choices[0]?.toolCalls ?? []).map(({ id, name, arguments: text, status }) => ({
    id,
    name,
    arguments: text,
    status,
  }));

test("an exact stream is read without any repair", () => {
  const result = read(
    hello + finish("stop") + chunk(null, { usage: { prompt_tokens: 1, completion_tokens: 2 } }) + done,
  );
  expect(result).toMatchObject({ repairs: [], usage: { promptTokens: 1, completionTokens: 2 }, end: { kind: "done" } });
  expect(result.choices).toMatchObject([{ text: "Hello", finish: { reason: "stop" }, toolCalls: [] }]);
  expect(result.source).toMatchObject({ id: "chatcmpl-1", created: 1700000000, model: "m" });
});

// OpenAI's calls have an index in streams only. That a whole answer has none was counted as a repair.
test("an exact whole answer with calls is read without any repair", () => {
  const reader = chatReader({ newCallId: () => "made" });
  const calls = ["a", "b"].map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }));
  const message = { role: "assistant", content: null, tool_calls: calls };
  const events = reader.readBody({
    ...envelope,
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: "tool_calls" }],
  });
  expect(callsOf(accumulate(events)).map(({ id }) => id)).toEqual(["a", "b"]);
  expect(reader.repairs.list()).toEqual([]);
});

describe("chunks", () => {
  test.each<[string, string, string[]]>([
    [
      "no choices at the start (Azure)",
      chunk(null, { id: "", model: "", prompt_filter_results: [{ prompt_index: 0 }] }) + hello,
      [],
    ],
    ["no choices in between", role + chunk(null) + delta({ content: "Hello" }), ["no-choices"]],
    [
      "choices null",
      role + delta({ content: "Hello" }) + `data: {"id":"chatcmpl-1","choices":null}\n\n`,
      ["object", "no-choices"],
    ],
    ["another id in every chunk", role + delta({ content: "Hello" }, { id: "chatcmpl-2" }), ["other-id"]],
    ["no id at all", delta({ role: "assistant", content: "Hello" }, { id: null }), ["no-id"]],
    ["another created", role + delta({ content: "Hello" }, { created: 1700000001 }), ["other-created"]],
    [
      "created as a float (SambaNova)",
      delta({ role: "assistant", content: "Hello" }, { created: 1700000000.5 }),
      ["created"],
    ],
    ["the wrong object", role + delta({ content: "Hello" }, { object: "chat.completion" }), ["object"]],
    ["no model", delta({ role: "assistant", content: "Hello" }, { model: undefined }), ["no-model"]],
    ["no index", chunk({ index: undefined, delta: { role: "assistant", content: "Hello" } }), ["choice-index"]],
  ])("%s", (_, body, repairs) => {
    const result = read(body + finish("stop") + done);
    expect(text(result)).toBe("Hello");
    expect(result.end.kind).toBe("done");
    expect(result.repairs).toEqual(repairs);
    expect(Number.isInteger(result.source?.created)).toBe(true);
  });
});

describe("role", () => {
  test.each<[string, string, string[]]>([
    [
      "on every delta (LocalAI)",
      delta({ role: "assistant", content: "Hel" }) + delta({ role: "assistant", content: "lo" }),
      ["role-again"],
    ],
    ["never (tabbyAPI)", delta({ content: "Hel" }) + delta({ content: "lo" }), ["no-role"]],
    ["after the content", delta({ content: "Hello" }) + role, ["no-role", "late-role"]],
  ])("%s", (_, body, repairs) => {
    const result = read(body + finish("stop") + done);
    expect(text(result)).toBe("Hello");
    expect(result.events.filter(({ type }) => type === "start")).toHaveLength(1);
    expect(result.repairs).toEqual(repairs);
  });
});

describe("tool calls", () => {
  const header = (index: number | undefined, id: string | undefined, name: string, args: unknown = ""): Members => ({
    index,
    id,
    type: "function",
    function: { name, arguments: args },
  });
  const piece = (index: number | undefined, args: unknown, more: Members = {}): Members => ({
    index,
    function: { arguments: args },
    ...more,
  });
  const two = [
    { id: "a", name: "f", arguments: '{"x":1}', status: "succeeded" },
    { id: "b", name: "g", arguments: '{"y":[2]}', status: "succeeded" },
  ];
  const twoOf = [two[0], { ...two[1], name: "f" }];

  // The arguments of the second call were appended to those of the first one, which then were no JSON. The second calls of the tests had
  // an id, another name, or arguments with their name.
  test("two calls under one index without ids are two, also where the second name comes without arguments", () => {
    const calls = (...more: Members[]): unknown[] => {
      const { choices } = read(
        [header(0, undefined, "f", '{"x"'), piece(0, ":1}"), ...more].map((one) => call(one)).join("") +
          finish("tool_calls") +
          done,
      );
      return (choices[0]?.toolCalls ?? []).map(({ name, arguments: text, status }) => [name, text, status]);
    };
    const first = ["f", '{"x":1}', "succeeded"];
    const second = ["f", '{"y":[2]}', "succeeded"];
    expect(calls(header(0, undefined, "f"), piece(0, '{"y"'), piece(0, ":[2]}"))).toEqual([first, second]);
    expect(calls(header(0, undefined, "f", '{"y"'), piece(0, ":[2]}"))).toEqual([first, second]);
    expect(
      calls(header(0, undefined, "f"), piece(0, '{"y":[2]}'), header(0, undefined, "f"), piece(0, '{"z":3}')),
    ).toEqual([first, second, ["f", '{"z":3}', "succeeded"]]);
    // The same again is a repetition, and a name alone is no call.
    expect(calls(header(0, undefined, "f"), piece(0, '{"x":1}'))).toEqual([first]);
    expect(calls(header(0, undefined, "f"))).toEqual([first]);
  });

  test.each<[string, string, unknown[]]>([
    [
      "OpenAI's own",
      call(header(0, "a", "f")) +
        call(piece(0, '{"x"')) +
        call(piece(0, ":1}")) +
        call(header(1, "b", "g")) +
        call(piece(1, '{"y":[2]}')),
      two,
    ],
    [
      "no index, whole (Ollama, Gemini)",
      call(header(undefined, "a", "f", '{"x":1}')) + call(header(undefined, "b", "g", '{"y":[2]}')),
      two,
    ],
    [
      "no index, in pieces by id",
      call(header(undefined, "a", "f", "")) +
        call({ id: "a", function: { arguments: '{"x":1}' } }) +
        call(header(undefined, "b", "g", '{"y":[2]}')),
      two,
    ],
    [
      "no index, in pieces without id",
      call(header(undefined, "a", "f", '{"x"')) +
        call(piece(undefined, ":1}")) +
        call(header(undefined, "b", "g", '{"y"')) +
        call(piece(undefined, ":[2]}")),
      two,
    ],
    [
      "index from 1, sparse (content blocks)",
      call(header(1, "a", "f")) + call(piece(1, '{"x":1}')) + call(header(5, "b", "g")) + call(piece(5, '{"y":[2]}')),
      two,
    ],
    ["every call at index 0", call(header(0, "a", "f", '{"x":1}')) + call(header(0, "b", "g", '{"y":[2]}')), two],
    [
      "every call at index 0, same name",
      call(header(0, "a", "f", '{"x":1}')) + call(header(0, "b", "f", '{"y":[2]}')),
      twoOf,
    ],
    [
      "every call at index 0, in pieces",
      call(header(0, "a", "f", '{"x"')) +
        call(piece(0, ":1}")) +
        call(header(0, "b", "g", "")) +
        call(piece(0, '{"y":[2]}')),
      two,
    ],
    [
      "the same index twice in a chunk: header and arguments (openai-python #3201)",
      call(header(0, "a", "f"), piece(0, '{"x":')) +
        call(piece(0, "1}")) +
        call(header(1, "b", "g"), piece(1, '{"y":[2]}')),
      two,
    ],
    [
      "the same index twice in a chunk: two calls",
      call(header(0, "a", "f", '{"x":1}'), header(0, "b", "f", '{"y":[2]}')),
      twoOf,
    ],
    ["two calls in one delta", call(header(0, "a", "f", '{"x":1}'), header(1, "b", "g", '{"y":[2]}')), two],
    [
      "two headers in one delta, then pieces by index",
      call(header(0, "a", "f"), header(1, "b", "g")) +
        call(piece(0, '{"x"')) +
        call(piece(1, '{"y"')) +
        call(piece(0, ":1}")) +
        call(piece(1, ":[2]}")),
      two,
    ],
    [
      "two headers in one delta, then pieces by place",
      call(header(undefined, "a", "f"), header(undefined, "b", "g")) +
        call(piece(undefined, '{"x"'), piece(undefined, '{"y"')) +
        call(piece(undefined, ":1}"), piece(undefined, ":[2]}")),
      two,
    ],
    [
      "pieces of two calls in turn",
      call(header(0, "a", "f", '{"x"')) +
        call(header(1, "b", "g", '{"y"')) +
        call(piece(0, ":1}")) +
        call(piece(1, ":[2]}")),
      two,
    ],
    [
      "a new id in each fragment (LiteLLM #40040)",
      call(header(0, "a", "f")) +
        call(header(0, "a2", "f", '{"x"')) +
        call(piece(0, ":1}", { id: "a3" })) +
        call(header(1, "b", "g", '{"y":[2]}')),
      two,
    ],
    [
      "the name repeated on each fragment",
      call(header(0, "a", "f")) +
        call(header(0, "a", "f", '{"x"')) +
        call(header(0, "a", "f", ":1}")) +
        call(header(1, "b", "g", '{"y":[2]}')),
      two,
    ],
    [
      "an empty name on continuation (LM Studio #649)",
      call(header(0, "a", "f")) + call(header(0, "", "", '{"x":1}')) + call(header(1, "b", "g", '{"y":[2]}')),
      two,
    ],
    [
      "the name late",
      call({ index: 0, id: "a", function: { arguments: '{"x"' } }) +
        call({ index: 0, function: { name: "f", arguments: ":1}" } }) +
        call(header(1, "b", "g", '{"y":[2]}')),
      two,
    ],
    ["arguments as an object", call(header(0, "a", "f", { x: 1 }), header(1, "b", "g", { y: [2] })), two],
    [
      "arguments repeated whole at the end",
      call(header(0, "a", "f", '{"x"')) +
        call(piece(0, ":1}")) +
        call(header(0, "a", "f", '{"x":1}')) +
        call(header(1, "b", "g", '{"y":[2]}')),
      two,
    ],
    [
      "tool_calls as one object",
      delta({ tool_calls: header(0, "a", "f", '{"x":1}') }) + delta({ tool_calls: header(1, "b", "g", '{"y":[2]}') }),
      two,
    ],
  ])("%s", (_, body, calls) => {
    const result = read(role + body + finish("tool_calls") + done);
    expect(callsOf(result)).toEqual(calls);
    expect(reason(result)).toBe("tool-calls");
    expect(result.end.kind).toBe("done");
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["empty", ""],
    ["absent", undefined],
    ["the word null", "null"],
  ])("a call without arguments (%s) has {}, in the stream too (vLLM #28806)", (_, args) => {
    const result = read(role + call(header(0, "a", "f", args)) + finish("tool_calls") + done);
    expect(callsOf(result)).toEqual([{ id: "a", name: "f", arguments: "{}", status: "succeeded" }]);
    expect(result.events.filter(({ type }) => type === "tool-call-delta")).toHaveLength(1);
  });

  test("arguments in the last chunk, with the finish reason", () => {
    const last = chunk({ delta: { tool_calls: [piece(0, '{"x":1}')] }, finish_reason: "tool_calls" });
    expect(callsOf(read(role + call(header(0, "a", "f")) + last + done))).toEqual([two[0]]);
  });

  test.each<[string, Members[]]>([
    ["absent", [header(0, undefined, "f", "{}"), header(1, undefined, "g", "{}")]],
    ["empty", [header(0, "", "f", "{}"), header(1, "", "g", "{}")]],
    ["the same for two calls", [header(0, "a", "f", "{}"), header(1, "a", "g", "{}")]],
  ])("an id that is %s is made anew", (_, calls) => {
    const result = read(role + calls.map((one) => call(one)).join("") + finish("tool_calls") + done);
    const ids = callsOf(result).map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
    expect(ids[1]).toMatch(/^call_made_/);
  });

  // The reader called the function until it returned an id that was free: with one that repeats itself, forever.
  test("ids differ although the caller's function repeats itself", () => {
    const calls = Array.from({ length: 50 }, (_, index) => call(header(index, undefined, "f", "{}")));
    const ids = callsOf(read(role + calls.join("") + finish("tool_calls") + done, { newCallId: () => "x" })).map(
      ({ id }) => id,
    );
    expect(ids.slice(0, 3)).toEqual(["x", "x_2", "x_3"]);
    expect(new Set(ids).size).toBe(50);
  });

  // The word was dropped from every fragment that held nothing else. The tests had it only in place of all arguments.
  test("a fragment null within arguments is kept, and null instead of arguments is not", () => {
    const inside =
      call(header(0, "a", "f", '{"a":1')) +
      [',"v":', "null", "}"].map((text) => call(piece(0, text, { id: "a" }))).join("");
    expect(callsOf(read(role + inside + finish("tool_calls") + done))).toMatchObject([
      { arguments: '{"a":1,"v":null}' },
    ]);
    for (const before of ["null", " null", "nu"]) {
      const late =
        call(header(0, "a", "f", before)) + call(piece(0, before === "nu" ? "ll" : "")) + call(piece(0, '{"x":1}'));
      expect(callsOf(read(role + late + finish("tool_calls") + done))).toEqual([two[0]]);
    }
    const custom = { index: 0, id: "a", type: "custom", custom: { name: "f", input: "a" } };
    const body = call(custom) + call({ ...custom, custom: { input: "null" } }) + finish("tool_calls") + done;
    expect(callsOf(read(role + body))).toMatchObject([{ arguments: "anull", status: "succeeded" }]);
  });

  test("malformed arguments are kept, and the call is flagged", () => {
    const result = read(role + call(header(0, "a", "f", '{"x": oops')) + finish("tool_calls") + done);
    expect(callsOf(result)).toEqual([{ id: "a", name: "f", arguments: '{"x": oops', status: "failed" }]);
    expect(result.events).toContainEqual({
      type: "tool-call-end",
      choice: 0,
      index: 0,
      status: "failed",
      raw: '{"x": oops',
    });
  });

  test("a call without a name becomes text", () => {
    const result = read(role + call(piece(0, '{"x":1}', { id: "a" })) + finish("stop") + done);
    expect(text(result)).toBe('{"x":1}');
    expect(callsOf(result)).toEqual([]);
    expect(result.repairs).toContain("nameless-call");
  });

  test("arguments are emitted as they arrive, not at the end of the call", () => {
    const reader = chatReader({ newCallId: () => "x" });
    reader.push(role + call(header(0, "a", "f")));
    expect(reader.push(call(piece(0, '{"x"')))).toEqual([
      { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"x"' },
    ]);
    expect(reader.push(call(piece(0, ":")))).toEqual([
      { type: "tool-call-delta", choice: 0, index: 0, arguments: ":" },
    ]);
  });

  test("content in a delta with calls is emitted before them", () => {
    const result = read(
      delta({ role: "assistant", content: "Look: ", tool_calls: [header(0, "a", "f", "{}")] }) +
        finish("tool_calls") +
        done,
    );
    const types = result.events.map(({ type }) => type);
    expect(types.indexOf("text-delta")).toBeLessThan(types.indexOf("tool-call-start"));
    expect(result.repairs).toContain("mixed-delta");
  });

  test("the legacy function_call is a call", () => {
    const stream =
      role +
      delta({ function_call: { name: "f", arguments: "" } }) +
      delta({ function_call: { arguments: '{"x":1}' } }) +
      finish("function_call") +
      done;
    expect(callsOf(read(stream))).toMatchObject([{ name: "f", arguments: '{"x":1}' }]);
    expect(reason(read(stream))).toBe("tool-calls");
    expect(reason(read(stream, { legacyFunctions: false }))).toBe("tool-calls");
    expect(reason(read(stream.replaceAll('"function_call"}', '"stop"}'), { legacyFunctions: true }))).toBe(
      "function-call",
    );
  });

  // llama-cpp-python 0.3.36 sends each delta of a call in both forms, and its arguments came twice.
  test("a call in both forms is one call", () => {
    const both = (piece: string): string => {
      const called = { name: "f", arguments: piece };
      return delta({ function_call: called, tool_calls: [{ index: 0, id: "c", type: "function", function: called }] });
    };
    const stream = role + both('{"x"') + both(":1}") + finish("tool_calls") + done;
    expect(callsOf(read(stream))).toMatchObject([{ name: "f", arguments: '{"x":1}' }]);
  });

  test("a custom tool's input is text", () => {
    const stream =
      role +
      call({ index: 0, id: "a", type: "custom", custom: { name: "sh", input: "" } }) +
      call({ index: 0, custom: { input: "ls" } });
    const result = read(stream + finish("tool_calls") + done);
    expect(result.choices[0]?.toolCalls).toMatchObject([
      { name: "sh", kind: "custom", arguments: "ls", status: "succeeded" },
    ]);
  });
});

describe("finish reasons", () => {
  const f = call({ index: 0, id: "a", type: "function", function: { name: "f", arguments: "{}" } });
  test.each<[string, string, string]>([
    ["stop though calls were made", role + f + finish("stop"), "tool-calls"],
    ["length wins over calls", role + f + finish("length"), "length"],
    ["eos", hello + finish("eos"), "stop"],
    ["end_turn", hello + finish("end_turn"), "stop"],
    ["MAX_TOKENS", hello + finish("MAX_TOKENS"), "length"],
    ["an unknown word", hello + finish("because"), "stop"],
    ["empty until the end", role + chunk({ delta: { content: "Hello" }, finish_reason: "" }) + finish("stop"), "stop"],
    [
      "on a text chunk",
      role + delta({ content: "Hel" }) + chunk({ delta: { content: "lo" }, finish_reason: "stop" }),
      "stop",
    ],
    [
      "before the end (LiteLLM #376)",
      role + delta({ content: "Hel" }) + finish("stop") + delta({ content: "lo" }),
      "stop",
    ],
    ["before the calls", role + finish("stop") + f, "tool-calls"],
    ["twice", hello + finish("stop") + finish("stop"), "stop"],
    ["twice, differing: the first is kept", hello + finish("length") + finish("stop"), "length"],
    ["never", hello, "stop"],
    ["never, with calls", role + f, "tool-calls"],
    ["function_call for a tool call", role + f + finish("function_call"), "tool-calls"],
  ])("%s", (_, body, expected) => {
    const result = read(body + done);
    expect(reason(result)).toBe(expected);
    expect(result.end.kind).toBe("done");
    if (!body.includes("tool_calls")) expect(text(result)).toBe("Hello");
    expect(result.events.filter(({ type }) => type === "finish")).toHaveLength(1);
  });

  test("tool_calls without a call is left to the reader of the text", () => {
    const result = read(role + finish("tool_calls") + done, { callsInText: true });
    expect([reason(result), result.end.kind]).toEqual(["tool-calls", "done"]);
  });

  test("error as a finish reason is a failure", () => {
    expect(read(hello + finish("error") + done).end.kind).toBe("upstream-error");
  });

  test("the stop string of a choice is reported", () => {
    const result = read(hello + chunk({ finish_reason: "stop", stop_reason: "END" }) + done);
    expect(result.choices[0]?.finish).toEqual({ reason: "stop", stop: "END" });
  });
});

describe("usage", () => {
  const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 };
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  test.each<[string, string]>([
    ["in the last chunk", hello + finish("stop") + chunk(null, { usage })],
    [
      "on every chunk, growing",
      delta({ role: "assistant", content: "Hel" }, { usage: { ...usage, completion_tokens: 1 } }) +
        delta({ content: "lo" }, { usage }) +
        finish("stop", { usage }),
    ],
    ["on the finish chunk", hello + finish("stop", { usage })],
    ["only in x_groq", hello + finish("stop", { x_groq: { id: "r", usage } })],
    [
      "zeros first",
      delta({ role: "assistant", content: "Hello" }, { usage: zeros }) + finish("stop") + chunk(null, { usage }),
    ],
    ["zeros last", hello + finish("stop", { usage }) + chunk(null, { usage: zeros })],
    [
      "under the names of the Responses API",
      hello + finish("stop") + chunk(null, { usage: { input_tokens: 5, output_tokens: 2 } }),
    ],
  ])("%s", (_, body) => {
    const result = read(body + done);
    expect(result.usage).toEqual({ promptTokens: 5, completionTokens: 2 });
    expect(text(result)).toBe("Hello");
    expect(result.events.filter(({ type }) => type === "usage")).toHaveLength(1);
  });

  test("OpenAI's counts of text and image tokens are read", () => {
    const prompt_tokens_details = { cached_tokens: 3, audio_tokens: 0, text_tokens: 4, image_tokens: 1 };
    const completion_tokens_details = { reasoning_tokens: 1, text_tokens: 1 };
    const detailed = { ...usage, prompt_tokens_details, completion_tokens_details };
    expect(read(hello + finish("stop") + chunk(null, { usage: detailed }) + done).usage).toMatchObject({
      promptDetails: prompt_tokens_details,
      completionDetails: completion_tokens_details,
    });
  });

  test("missing or all zero: no usage is emitted", () => {
    expect(read(hello + finish("stop") + done).usage).toBeUndefined();
    expect(read(hello + finish("stop") + chunk(null, { usage: zeros }) + done).usage).toBeUndefined();
  });

  test("details are kept, negative ones dropped", () => {
    const odd = { ...usage, prompt_tokens_details: { cached_tokens: 3, audio_tokens: -1 } };
    expect(read(hello + finish("stop") + chunk(null, { usage: odd }) + done).usage).toEqual({
      promptTokens: 5,
      completionTokens: 2,
      promptDetails: { cached_tokens: 3 },
    });
  });

  // The total was passed on, and "truewire check" reports a total that is not the sum as an error.
  test.each([
    ["reasoning that the total alone counts (Gemini, xAI) belongs to the completion", 9, 4],
    ["a total below the sum is dropped", 6, 2],
  ])("%s", (_, total_tokens, completionTokens) => {
    const counted = chunk(null, { usage: { ...usage, total_tokens } });
    expect(read(hello + finish("stop") + counted + done).usage).toEqual({ promptTokens: 5, completionTokens });
  });
});

describe("reasoning", () => {
  test.each<[string, Members]>([
    ["reasoning_content", { reasoning_content: "hm" }],
    ["reasoning", { reasoning: "hm" }],
    ["reasoning_text", { reasoning_text: "hm" }],
    ["thinking", { thinking: "hm" }],
    ["reasoning_details", { reasoning_details: [{ type: "reasoning.text", text: "hm" }] }],
    [
      "two names at once (OpenRouter)",
      { reasoning: "hm", reasoning_details: [{ type: "reasoning.text", text: "hm" }] },
    ],
    ["a thinking part (Mistral)", { content: [{ type: "thinking", thinking: [{ type: "text", text: "hm" }] }] }],
  ])("%s", (_, members) => {
    const result = read(role + delta(members) + delta({ content: "Hello" }) + finish("stop") + done);
    expect(result.choices[0]).toMatchObject({ reasoning: "hm", text: "Hello" });
  });
});

describe("errors inside a 200", () => {
  const told = { message: "no", param: "messages", code: "context_length_exceeded" };
  const own = { ...told, type: "invalid_request_error" };
  const known = { ...told, kind: "context-overflow", sourceType: "invalid_request_error" };
  test.each<[string, string, Members]>([
    ["an error object", `data: {"error":${JSON.stringify(own)}}\n\n`, { ...known, status: 400 }],
    ["a named event", `event: error\ndata: {"error":${JSON.stringify(own)}}\n\n`, known],
    ["a named event with plain data", "event: error\ndata: no\n\n", { message: "no", status: 502 }],
    [
      "vLLM's",
      'data: {"object":"error","message":"no","type":"BadRequestError","param":null,"code":400}\n\n',
      { message: "no", status: 400, kind: "invalid-request", code: null },
    ],
    ["a string", 'data: {"error":"no"}\n\n', { message: "no", status: 502, kind: "bad-answer" }],
    ["a JSON string", 'data: "no"\n\n', { message: "no" }],
    ["plain words as data", "data: Internal failure\n\n", { message: "Internal failure" }],
    [
      "a page",
      "<!doctype html>\n<html><head><title>502 Bad Gateway</title></head></html>\n",
      { message: "502 Bad Gateway", status: 502 },
    ],
    ["plain words", "upstream connect error or disconnect\n", { message: "upstream connect error or disconnect" }],
    ["FastAPI's detail", '{"detail":"Not today"}', { message: "Not today" }],
    [
      "Gemini's list",
      '[{"error":{"code":429,"message":"no","status":"RESOURCE_EXHAUSTED"}}]',
      { message: "no", status: 429, kind: "rate-limited", sourceType: "rate_limit_error" },
    ],
    [
      "Anthropic's",
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"no"}}\n\n',
      { message: "no", status: 503, kind: "overloaded", sourceType: "overloaded_error" },
    ],
    [
      "a pretty-printed body",
      '{\n  "error": {\n    "message": "no",\n    "type": "tokens",\n    "param": null,\n    "code": "rate_limit_exceeded"\n  }\n}\n',
      { message: "no", status: 429, sourceType: "tokens", code: "rate_limit_exceeded" },
    ],
    ["an event that is not JSON", 'data: {"id":\n\n', { status: 502 }],
  ])("%s", (_, body, failure) => {
    expect(read(body).end).toMatchObject({ kind: "upstream-error", failure });
    const late = read(hello + body);
    expect(text(late)).toBe("Hello");
    expect(late.choices[0]?.finish).toBeNull();
    // Plain words after events may be a proxy's farewell: then the stream was cut.
    expect(["upstream-error", "truncated"]).toContain(late.end.kind);
  });

  const message = { role: "assistant", content: "Hello" };
  const whole = { ...envelope, object: "chat.completion", choices: [{ index: 0, message, finish_reason: "stop" }] };
  test.each<[string, string]>([
    ["a JSON body where a stream was asked", JSON.stringify(whole)],
    ["a pretty-printed JSON body", `${JSON.stringify(whole, null, 2)}\n`],
    ["a JSON body as one event", `data: ${JSON.stringify(whole)}\n\n${done}`],
    ["bare JSON lines (gpustack #6155)", (hello + finish("stop")).replaceAll("data: ", "") + done],
  ])("%s", (_, body) => {
    const result = read(body);
    expect(text(result)).toBe("Hello");
    expect(reason(result)).toBe("stop");
    expect(result.end.kind).toBe("done");
  });

  test("Python's NaN and Infinity are null", () => {
    const logprobs = '{"content":[{"token":"Infinity","logprob":-Infinity,"bytes":null,"top_logprobs":[]}]}';
    const line = `data: ${JSON.stringify({ ...envelope, choices: [{ index: 0, delta: { role: "assistant", content: "Infinity" }, logprobs: 0 }] })}\n\n`;
    const result = read(line.replace('"logprobs":0', `"logprobs":${logprobs}`) + finish("stop") + done);
    expect(result.choices[0]).toMatchObject({
      text: "Infinity",
      textLogprobs: [{ token: "Infinity", logprob: -9999 }],
    });
  });
});

describe("ends", () => {
  test("cut after some text is an error, never a clean end (Bifrost #5546)", () => {
    const result = read(hello);
    expect(text(result)).toBe("Hello");
    expect(result.end).toMatchObject({ kind: "truncated", failure: { status: 502 } });
  });

  test("cut inside an event, and inside a character", () => {
    const bytes = new TextEncoder().encode(hello + delta({ content: "é" }));
    for (const cut of [5, 20, bytes.length - 40]) {
      const result = readPieces([bytes.slice(0, bytes.length - cut)], {});
      expect(["truncated", "upstream-error"]).toContain(result.end.kind);
    }
  });

  test.each<[string, string]>([
    ["after finish but before [DONE]", hello + finish("stop")],
    ["[DONE] without a blank line", `${hello}${finish("stop")}data: [DONE]`],
    ["[DONE] without a space, twice", `${hello}${finish("stop")}data:[DONE]\n\ndata:[DONE]\n\n`],
    ["[DONE] followed by more", hello + finish("stop") + done + delta({ content: "more" })],
    ["pings after the finish", `${hello}${finish("stop")}: ping\n\n: ping\n\n`],
  ])("%s is a clean end", (_, body) => {
    const result = read(body);
    expect(text(result)).toBe("Hello");
    expect(result.end.kind).toBe("done");
  });

  test("the reader reports when only pings follow the finish", () => {
    const reader = chatReader({ newCallId: () => "x" });
    reader.push(hello);
    expect(reader.finished).toBe(false);
    reader.push(`${finish("stop")}: ping\n\n`);
    expect([reader.finished, reader.ended]).toEqual([true, false]);
    expect(reader.abandon({ kind: "done" }).at(-1)).toEqual({ type: "end", end: { kind: "done" } });
  });

  test.each(["", done, ": ping\n\n"])("nothing at all (%j) is an error", (body) => {
    expect(["truncated", "upstream-error"]).toContain(read(body).end.kind);
  });

  test("an event without end stops at the limit", () => {
    const reader = chatReader({ newCallId: () => "x", frameLimit: 1000 });
    expect(reader.push(`${role}data: `).map(({ type }) => type)).toEqual(["start"]);
    expect(reader.push("x".repeat(1001))).toMatchObject([
      { type: "end", end: { kind: "upstream-error", failure: { status: 502 } } },
    ]);
    expect(reader.push("x")).toEqual([]);
  });
});

describe("logprobs with tokens that are not in the text", () => {
  const entries = (...tokens: readonly string[]): Members => ({
    content: tokens.map((token) => ({ token, logprob: -0.5, bytes: null, top_logprobs: [] })),
  });
  const tokens = ({ events }: Read): string[] =>
    events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []).map(({ token }) => token) : []));

  // llama.cpp's server lists every token that the model made. The logprobs of our double were those of the text alone.
  test("in a stream, those of chunks without content are left out; a part of a character stays", () => {
    const stream = [
      chunk({ delta: { role: "assistant", content: null }, logprobs: entries("<think>") }),
      chunk({ delta: { reasoning_content: "Hm" }, logprobs: entries("Hm") }),
      chunk({ delta: { content: "" }, logprobs: entries("\ud83d") }),
      chunk({ delta: { content: "é!" }, logprobs: entries("é", "!") }),
    ];
    const result = read(stream.join("") + finish("stop") + done);
    expect(tokens(result).slice(-2)).toEqual(["é", "!"]);
    expect(tokens(result)).toHaveLength(3);
    expect(result.repairs).toContain("logprobs-other-tokens");
  });

  // Ollama's chunks of reasoning have an empty content, so that their tokens were taken for those of the text (Ollama 0.17.4).
  test("in a stream, those of chunks of reasoning and of calls are left out, although their content is empty", () => {
    const call = { index: 0, id: "c", type: "function", function: { name: "f", arguments: "{}" } };
    const stream = [
      chunk({ delta: { role: "assistant", content: "", reasoning: "Hm" }, logprobs: entries("Hm") }),
      chunk({ delta: { content: "Hi" }, logprobs: entries("Hi") }),
      chunk({ delta: { content: "", tool_calls: [call] }, logprobs: entries("{", "}") }),
    ];
    expect(tokens(read(stream.join("") + finish("tool_calls") + done))).toEqual(["Hi"]);
  });

  const answer = (message: Members, logprobs: Members): string =>
    JSON.stringify({
      ...envelope,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", ...message }, logprobs, finish_reason: "stop" }],
    });

  test.each([
    ["before it", "Hi!", ["<think>", "Hm", "</think>", "\n", "Hi", "!", ""], ["Hi", "!", ""]],
    // vLLM 0.32; they were passed on as tokens of the text.
    ["after it", "Hi!", ["Hi", "!", "<|im_end|>"], ["Hi", "!"]],
    ["of a text that is there twice", "a", ["a", "a"], ["a"]],
    ["where there is no text", null, ["{", "}"], []],
    ["in the middle of which the text begins", "i!", ["Hi", "!"], ["Hi", "!"]],
    ["which are another text", "Hi", ["Ho"], ["Ho"]],
  ])("in a whole answer: %s", (_, content, listed, left) => {
    expect(tokens(readPieces([answer({ content }, entries(...listed))], {}))).toEqual(left);
  });
});

describe("content and logprobs", () => {
  test.each<[string, unknown, string]>([
    [
      "parts",
      [
        { type: "text", text: "Hel" },
        { type: "text", text: "lo" },
      ],
      "Hello",
    ],
    ["a list of strings", ["Hel", "lo"], "Hello"],
    ["a number", 42, "42"],
    ["zero", 0, "0"],
    ["a part", { type: "text", text: "Hello" }, "Hello"],
  ])("content as %s", (_, content, expected) => {
    expect(text(read(role + delta({ content: null }) + delta({ content }) + finish("stop") + done))).toBe(expected);
  });

  test.each<[string, unknown, unknown]>([
    [
      "chat",
      {
        content: [
          {
            token: "Hi",
            logprob: -0.5,
            bytes: [72, 105],
            top_logprobs: [{ token: "Hi", logprob: -0.5, bytes: [72, 105] }],
          },
        ],
        refusal: null,
      },
      { token: "Hi", logprob: -0.5, bytes: [72, 105], top: [{ token: "Hi", logprob: -0.5, bytes: [72, 105] }] },
    ],
    [
      "completions",
      { tokens: ["Hi"], token_logprobs: [-0.5], top_logprobs: [{ Hi: -0.5 }], text_offset: [0] },
      { token: "Hi", logprob: -0.5, bytes: null, top: [{ token: "Hi", logprob: -0.5, bytes: null }] },
    ],
    ["Together", { tokens: ["Hi"], token_logprobs: [-0.5] }, { token: "Hi", logprob: -0.5, bytes: null, top: [] }],
    ["a bare float", -0.5, { token: "Hi", logprob: -0.5, bytes: null, top: [] }],
  ])("logprobs in the shape of %s", (_, logprobs, expected) => {
    const result = read(role + chunk({ delta: { content: "Hi" }, logprobs }) + finish("stop") + done);
    expect(result.choices[0]?.textLogprobs).toEqual([expected]);
  });
});

test("interleaved choices keep their numbers, and one that is finished does not wait for the others", () => {
  const at = (index: number, content: string): string => chunk({ index, delta: { content } });
  const start = (index: number): string => chunk({ index, delta: { role: "assistant" } });
  const end = (index: number): string => chunk({ index, finish_reason: "stop" });
  const result = read(start(0) + at(0, "a") + start(1) + at(1, "b") + end(0) + at(1, "c") + end(1) + done);
  expect(result.choices.map(({ text }) => text)).toEqual(["a", "bc"]);
  const order = result.events.flatMap((event) =>
    event.type === "finish" || event.type === "text-delta" ? [`${event.type} ${event.choice}`] : [],
  );
  expect(order).toEqual(["text-delta 0", "text-delta 1", "finish 0", "text-delta 1", "finish 1"]);
});

test("members that a source adds are emitted once, as extra", () => {
  const result = read(
    delta({ role: "assistant", content: "Hel" }, { provider: "X", citations: ["u"] }) +
      delta({ content: "lo", annotations: [{ type: "url_citation" }] }, { provider: "X", citations: ["u"] }) +
      finish("stop") +
      done,
  );
  expect(result.extras).toEqual([
    { type: "extra", place: "chunk", value: { provider: "X", citations: ["u"] } },
    { type: "extra", place: "delta", choice: 0, value: { annotations: [{ type: "url_citation" }] } },
  ]);
});

describe("the fast path for chunks that differ in one string", () => {
  const words = ["a", 'quo"te', "back\\slash", "new\nline", "é😀", "\u2028", "", "x".repeat(1000), '","logprobs":null'];
  test.each<[string, (word: string) => Members]>([
    ["text", (content) => ({ content })],
    ["reasoning", (word) => ({ reasoning_content: word })],
    ["arguments", (word) => ({ tool_calls: [{ index: 0, function: { arguments: word } }] })],
  ])("%s reads the same as one chunk at a time", (_, members) => {
    const start = role + call({ index: 0, id: "a", type: "function", function: { name: "f", arguments: "" } });
    const chunks = words.map((word) => delta(members(word), { obfuscation: "abc" }));
    const spaced = chunks.map((line) =>
      line.replace(/"(?:[^"\\]|\\.)*"|[:,] ?/g, (token) => (token.startsWith('"') ? token : `${token[0]} `)),
    );
    for (const list of [chunks, spaced]) {
      const together = readPieces([start, ...list, finish("tool_calls"), done], {});
      const texts = together.events.flatMap((event) => {
        if (event.type === "tool-call-delta") return [event.arguments];
        return event.type === "text-delta" || event.type === "reasoning-delta" ? [event.text] : [];
      });
      expect(texts.filter((word) => word !== "{}")).toEqual(words.filter((word) => word !== ""));
    }
  });

  test("a chunk that only looks alike is read in full", () => {
    const odd = delta({ content: "b" }).replace('"content":"b"', '"content":"b","content":"c"');
    const result = read(role + delta({ content: "a" }) + delta({ content: "a" }) + odd + finish("stop") + done);
    expect(text(result)).toBe("aac");
  });
});

describe("choices that were not requested", () => {
  // An upstream that sent one event for each of 8,000 choice indices held the gateway for 2.6 seconds. No test had a choice beyond `n`.
  const said = (index: number, content: string): string => chunk({ index, delta: { role: "assistant", content } });
  const texts = (result: Generation): unknown[] => result.choices.map(({ choice, text }) => [choice, text]);

  test("are dropped, and noted as repairs", () => {
    const stream = said(0, "a") + said(1, "b") + said(7, "c") + chunk({ index: 1, finish_reason: "stop" });
    const result = read(stream + finish("stop") + done, { choices: 1 });
    expect(texts(result)).toEqual([[0, "a"]]);
    expect(result).toMatchObject({ repairs: ["surplus-choice"], end: { kind: "done" } });
  });

  test("none are dropped where the source counts from 1, or has any other number for the only choice", () => {
    const one = said(5, "a") + chunk({ index: 5, finish_reason: "stop" }) + done;
    expect(texts(read(one, { choices: 1 }))).toEqual([[0, "a"]]);
    const two = said(1, "a") + said(2, "b") + said(1, "c") + done;
    expect(texts(read(two, { choices: 2 }))).toEqual([
      [0, "b"],
      [1, "ac"],
    ]);
  });

  test("a whole answer with many choices has the requested ones", () => {
    const choices = Array.from({ length: 50 }, (_, index) => ({
      index,
      message: { role: "assistant", content: `${index}` },
      finish_reason: "stop",
    }));
    const reader = chatReader({ newCallId: () => "call_1", choices: 3 });
    const result = accumulate(reader.readBody({ ...envelope, object: "chat.completion", choices }));
    expect(texts(result)).toEqual([
      [0, "0"],
      [1, "1"],
      [2, "2"],
    ]);
  });

  test("of a capture, whose request is not known, all 100,000 are read in linear time", () => {
    const reader = chatReader({ newCallId: () => "call_1" });
    const whole = chunk({ delta: { role: "assistant", content: "a" } }) + chunk({ finish_reason: "stop" });
    const events = reader.push(
      Array.from({ length: 100_000 }, (_, index) => whole.replaceAll('"index":0', `"index":${index}`)).join("") + done,
    );
    expect(events.filter(({ type }) => type === "finish")).toHaveLength(100_000);
  });
});

// A whole answer's audio was written in the order of a stream's.
test("audio is passed on, in the order of OpenAI's streams and of its whole answers", () => {
  const ofChunk = { id: "audio_1", transcript: "Hi", data: "AA==", expires_at: 1 };
  const ofMessage = { id: "audio_1", data: "AA==", transcript: "Hi", expires_at: 1 };
  const audioIn = ({ events }: Read): unknown[] =>
    events.flatMap((event) => (event.type === "extra" ? [event.value] : []));
  const stream = role + delta({ content: null, audio: ofMessage }) + finish("stop") + done;
  expect(JSON.stringify(audioIn(read(stream)))).toBe(JSON.stringify([{ content: null, audio: ofChunk }]));
  const message = { role: "assistant", content: null, refusal: null, audio: ofChunk };
  const body = JSON.stringify({
    ...envelope,
    object: "chat.completion",
    choices: [{ index: 0, message, finish_reason: "stop" }],
  });
  expect(JSON.stringify(audioIn(readPieces([body], {})))).toBe(JSON.stringify([{ content: null, audio: ofMessage }]));
});

test("calls of custom tools are read with their kind", () => {
  const header = call({ index: 0, id: "call_1", type: "custom", custom: { name: "patch", input: "" } });
  const rest = call({ index: 0, custom: { input: "*** Begin" } });
  const { choices, repairs } = read(role + header + rest + finish("tool_calls") + done);
  expect(choices[0]?.toolCalls).toMatchObject([
    { id: "call_1", kind: "custom", name: "patch", arguments: "*** Begin" },
  ]);
  expect(repairs).toEqual([]);
});
