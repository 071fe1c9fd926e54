import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { readFailure } from "../tolerant/read-failure.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { errorJson } from "./error-object.ts";
import { anthropicFormat } from "./port.ts";
import { exact, lean, type Profile } from "../profile.ts";
import type { ImageProblem } from "../../core/events.ts";
import { invalidImage } from "../../core/failure.ts";
import { MessageReader } from "./read.ts";
import { MessageStreamWriter } from "./write-stream.ts";

type Json = { readonly [name: string]: unknown };

function newReader(): MessageReader {
  let ids = 0;
  return new MessageReader({ newCallId: () => `new_${++ids}` });
}

/** A stream of these events. */
function stream(...events: readonly Json[]): string {
  return events.map((event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

function read(text: string): {
  generation: Generation;
  repairs: readonly string[];
  events: readonly GenerationEvent[];
} {
  const reader = newReader();
  const events = [...reader.push(text), ...reader.end()];
  return { generation: accumulate(events), repairs: reader.repairs.list().map(({ id }) => id), events };
}

const usage = { input_tokens: 5, cache_creation_input_tokens: 2, cache_read_input_tokens: 3, output_tokens: 1 };
const start = { type: "message_start", message: { id: "msg_1", model: "m", content: [], usage } };
const block = (index: number, content_block: Json): Json => ({ type: "content_block_start", index, content_block });
const textBlock = (index: number) => block(index, { type: "text", text: "" });
const callBlock = (index: number, id = `toolu_${index}`) =>
  block(index, { type: "tool_use", id, name: "f", input: {}, caller: { type: "direct" } });
const delta = (index: number, delta: Json): Json => ({ type: "content_block_delta", index, delta });
const text = (index: number, text: string) => delta(index, { type: "text_delta", text });
const json = (index: number, partial_json: unknown) => delta(index, { type: "input_json_delta", partial_json });
const stop = (index: number): Json => ({ type: "content_block_stop", index });
const ending = (stop_reason: unknown): Json => ({
  type: "message_delta",
  delta: { stop_reason, stop_sequence: null },
  usage: { output_tokens: 7 },
});
const last = { type: "message_stop" };

const partsOf = (generation: Generation) => generation.choices[0]?.parts;

describe("a stream as Anthropic sends it", () => {
  test("text, thinking, a call: nothing is repaired", () => {
    const { generation, repairs, events } = read(
      stream(
        start,
        block(0, { type: "thinking", thinking: "", signature: "" }),
        { type: "ping" },
        delta(0, { type: "thinking_delta", thinking: "Hm." }),
        delta(0, { type: "signature_delta", signature: "sig" }),
        stop(0),
        block(1, { type: "redacted_thinking", data: "sealed" }),
        stop(1),
        textBlock(2),
        text(2, "I look."),
        stop(2),
        callBlock(3),
        json(3, ""),
        json(3, '{"a":1}'),
        stop(3),
        callBlock(4),
        json(4, ""),
        stop(4),
        ending("tool_use"),
        last,
      ),
    );
    expect(repairs).toEqual([]);
    expect(generation.choices[0]?.parts).toMatchObject([
      { type: "reasoning", text: "Hm.", state: { kind: "signature", value: "sig" } },
      { type: "reasoning", text: "", state: { kind: "redacted", value: "sealed" } },
      { type: "text", text: "I look." },
      { type: "tool-call", id: "toolu_3", name: "f", arguments: '{"a":1}', status: "succeeded" },
      { type: "tool-call", id: "toolu_4", arguments: "{}", status: "succeeded" },
    ]);
    expect(generation).toMatchObject({
      source: { id: "msg_1", model: "m" },
      usage: {
        promptTokens: 10,
        completionTokens: 7,
        promptDetails: { cached_tokens: 3, cache_write_tokens: 2 },
      },
      end: { kind: "done" },
    });
    expect(generation.choices[0]?.finish).toEqual({ reason: "tool-calls" });
    // What went in is known before the first delta.
    expect(events.slice(0, 2).map(({ type }) => type)).toEqual(["start", "usage"]);
  });

  test("why it ended", () => {
    const finishOf = (reason: string, more: Json = {}) =>
      read(
        stream(start, textBlock(0), text(0, "a"), stop(0), {
          ...ending(reason),
          delta: { stop_reason: reason, stop_sequence: null, ...more },
        }),
      ).generation.choices[0]?.finish;
    expect(finishOf("end_turn")).toEqual({ reason: "stop" });
    expect(finishOf("stop_sequence", { stop_sequence: "END" })).toEqual({ reason: "stop", stop: "END" });
    expect(finishOf("max_tokens")).toEqual({ reason: "length", limit: "max-tokens" });
    expect(finishOf("model_context_window_exceeded")).toEqual({ reason: "length", limit: "context" });
    expect(finishOf("refusal")).toEqual({ reason: "content-filter" });
    expect(finishOf("pause_turn")).toEqual({ reason: "stop" });
  });

  test("what only this API has goes along", () => {
    const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search" };
    const result = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [{ url: "u" }] };
    const citation = { type: "web_search_result_location", cited_text: "c", url: "u", title: "t" };
    const { generation, repairs } = read(
      stream(
        start,
        block(0, { ...search, input: {} }),
        json(0, ""),
        json(0, '{"query":"q"}'),
        stop(0),
        block(1, result),
        stop(1),
        block(2, { citations: [], type: "text", text: "" }),
        delta(2, { type: "citations_delta", citation }),
        text(2, "so"),
        stop(2),
        {
          type: "message_delta",
          delta: { stop_reason: "pause_turn", stop_sequence: null },
          usage: { output_tokens: 3, server_tool_use: { web_search_requests: 1 } },
        },
        last,
      ),
    );
    expect(repairs).toEqual([]);
    expect(partsOf(generation)).toMatchObject([
      {
        type: "hosted-call",
        id: "srvtoolu_1",
        kind: "web_search",
        arguments: '{"query":"q"}',
        native: { dialect: "messages", value: { ...search, input: {} } },
        result: { result: { kind: "search", results: [{ url: "u" }] } },
      },
      { type: "hosted-result", id: "srvtoolu_1", native: { dialect: "messages", value: result } },
      {
        type: "text",
        annotations: [{ url: "u", title: "t", citedText: "c", native: { dialect: "messages", value: citation } }],
      },
    ]);
    expect(generation.extras.map(({ value }) => value)).toEqual([
      { stop_reason: "pause_turn" },
      { usage: { server_tool_use: { web_search_requests: 1 } } },
    ]);
  });

  test("a call that the limit cut has failed", () => {
    const { generation, repairs } = read(stream(start, callBlock(0), json(0, '{"a'), ending("max_tokens"), last));
    expect(repairs).toEqual([]);
    expect(generation.choices[0]).toMatchObject({
      toolCalls: [{ arguments: '{"a', status: "failed" }],
      finish: { reason: "length" },
    });
  });

  test("an error is the end", () => {
    const failure = (error: Json) =>
      read(stream(start, textBlock(0), text(0, "a"), { type: "error", error })).generation.end;
    expect(failure({ type: "overloaded_error", message: "Overloaded" })).toMatchObject({
      kind: "upstream-error",
      failure: { kind: "overloaded", message: "Overloaded", sourceType: "overloaded_error" },
    });
    expect(
      failure({ type: "invalid_request_error", message: "prompt is too long: 300 tokens > 200 maximum" }),
    ).toMatchObject({ failure: { kind: "context-overflow", tokens: { asked: 300, most: 200 } } });
  });

  // A gateway left the details out, by which Anthropic's SDKs distinguish errors.
  test("an error keeps the details of an upstream of this API whole, whatever their code is", () => {
    const passedOn = (details: Json): unknown => {
      const failure = readFailure({ type: "error", error: { type: "conflict_error", message: "No.", details } }, 409);
      return failure && JSON.parse(errorJson(failure, null));
    };
    const error = { type: "conflict_error", message: "No." };
    const details = { error_code: "image_dimensions_too_large", max_side_length_pixels: 8000, paths: ["messages.0"] };
    expect(passedOn(details)).toEqual({ type: "error", error: { ...error, details }, request_id: null });
    const unknown = { error_code: "from_2027", more: 1 };
    expect(passedOn(unknown)).toEqual({ type: "error", error: { ...error, details: unknown }, request_id: null });
  });

  test("an image that cannot be used has Anthropic's words in profile exact", () => {
    const written = (image: ImageProblem, profile: Profile): unknown => {
      const { failure } = invalidImage(image, "Ours.", "messages[0].content[1]");
      return (JSON.parse(anthropicFormat.writeFailure(failure, profile, "req_1").body) as { error: unknown }).error;
    };
    const type = "invalid_request_error";
    const at = "messages.0.content.1.image.source.base64";
    const bytes = { why: "bytes", bytes: 6_275_800, most: 5 * 2 ** 20 } as const;
    expect(written(bytes, exact)).toEqual({
      type,
      message: `${at}: image exceeds 5 MB maximum: 6275800 bytes > 5242880 bytes`,
    });
    expect(written(bytes, lean)).toEqual({ type, message: "messages.0.content.1: Ours." });
    expect(written({ why: "side", most: 8000 }, exact)).toEqual({
      type,
      message: `${at}.data: At least one of the image dimensions exceed max allowed size: 8000 pixels`,
      details: {
        error_code: "image_dimensions_too_large",
        max_side_length_pixels: 8000,
        paths: ["messages.0.content.1"],
      },
    });
    expect(written({ why: "damaged" }, exact)).toEqual({ type, message: "Could not process image" });
    expect(written({ why: "format" }, exact)).toEqual({
      type,
      message: `${at}.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`,
    });
    expect(written({ why: "base64" }, exact)).toEqual({ type, message: `${at}: invalid base64 data` });
  });

  test("a cut stream is an error, one that lacks its last event is not", () => {
    const whole = stream(start, textBlock(0), text(0, "a"), stop(0), ending("end_turn"));
    expect(read(whole).generation.end.kind).toBe("done");
    expect(read(whole).repairs).toEqual(["message-stop"]);
    for (const cut of [whole.length - 200, 300, 10]) {
      expect(read(whole.slice(0, cut)).generation.end.kind).not.toBe("done");
    }
  });
});

describe("what servers get wrong", () => {
  const cases: readonly (readonly [string, readonly Json[], unknown, readonly string[]])[] = [
    [
      "blocks that overlap",
      [
        start,
        callBlock(0),
        callBlock(1),
        json(0, '{"a":'),
        json(1, '{"b":2}'),
        json(0, "1}"),
        stop(0),
        stop(1),
        ending("tool_use"),
        last,
      ],
      [{ arguments: '{"a":1}' }, { arguments: '{"b":2}' }],
      ["block-order"],
    ],
    [
      "blocks without a stop",
      [start, textBlock(0), text(0, "a"), callBlock(1), json(1, "{}"), ending("tool_use"), last],
      [{ text: "a" }, { arguments: "{}" }],
      ["block-order"],
    ],
    [
      "blocks without a start",
      [start, text(0, "a"), stop(0), ending("end_turn"), last],
      [{ type: "text", text: "a" }],
      ["block-order"],
    ],
    [
      "every block at index 0",
      [start, textBlock(0), text(0, "a"), stop(0), callBlock(0), json(0, "{}"), stop(0), ending("tool_use"), last],
      [{ text: "a" }, { arguments: "{}" }],
      ["block-index"],
    ],
    [
      "thinking in a text block",
      [
        start,
        textBlock(0),
        delta(0, { type: "thinking_delta", thinking: "Hm." }),
        text(0, "a"),
        stop(0),
        ending("end_turn"),
        last,
      ],
      [
        { type: "reasoning", text: "Hm." },
        { type: "text", text: "a" },
      ],
      ["delta-kind"],
    ],
    [
      "text while a call is open",
      [start, callBlock(0), json(0, '{"a":'), text(1, "b"), json(0, "1}"), stop(0), ending("tool_use"), last],
      [{ arguments: '{"a":1}' }, { type: "text", text: "b" }],
      ["block-order"],
    ],
    [
      "no message_start, OpenAI's names of counts",
      [
        textBlock(0),
        text(0, "a"),
        stop(0),
        { ...ending("end_turn"), usage: { prompt_tokens: 4, completion_tokens: 2 } },
        last,
      ],
      [{ text: "a" }],
      ["usage-value", "message-start"],
    ],
    [
      "a whole input in the start, as an object or a text",
      [
        start,
        block(0, { type: "tool_use", id: "a", name: "f", input: { a: 1 } }),
        stop(0),
        block(1, { type: "tool_use", id: "b", name: "f", input: '{"a":2}' }),
        stop(1),
        ending("tool_use"),
        last,
      ],
      [{ arguments: '{"a":1}' }, { arguments: '{"a":2}' }],
      [],
    ],
    [
      "deltas that are objects, a call without id, an id twice",
      [
        start,
        callBlock(0, ""),
        json(0, { a: 1 }),
        stop(0),
        callBlock(1, "x"),
        stop(1),
        callBlock(2, "x"),
        stop(2),
        ending("tool_use"),
        last,
      ],
      [{ id: "new_1", arguments: '{"a":1}' }, { id: "x" }, { id: "new_2" }],
      ["call-id", "call-arguments"],
    ],
    [
      "end_turn though a tool is used",
      [start, callBlock(0), json(0, "{}"), stop(0), ending("end_turn"), last],
      [{ arguments: "{}" }],
      ["stop-reason"],
    ],
    [
      "no indices at all",
      [
        start,
        { ...textBlock(0), index: null },
        { ...text(0, "a"), index: undefined },
        { type: "content_block_stop" },
        ending("stop"),
        last,
      ],
      [{ text: "a" }],
      ["block-index", "stop-reason"],
    ],
    [
      "deltas without a type, a call without a name",
      [start, textBlock(0), delta(0, { text: "a" }), json(0, "{1"), stop(0), ending("end_turn"), last],
      [{ text: "a{1" }],
      ["nameless-call", "delta-kind"],
    ],
    [
      "the end in several events, and more after it",
      [
        start,
        textBlock(0),
        text(0, "a"),
        stop(0),
        { ...ending(null), delta: {} },
        ending("end_turn"),
        last,
        text(0, "b"),
      ],
      [{ text: "a" }],
      ["message-delta", "after-message"],
    ],
  ];
  test.each(cases)("%s", (_, events, parts, repairs) => {
    const { generation, repairs: noted } = read(stream(...events));
    expect(partsOf(generation)).toMatchObject(parts as object[]);
    expect(partsOf(generation)).toHaveLength((parts as object[]).length);
    expect(noted).toEqual(repairs);
    expect(generation.end.kind).toBe("done");
    const calls = generation.choices[0]?.toolCalls.length ?? 0;
    expect(generation.choices[0]?.finish?.reason).toBe(calls > 0 ? "tool-calls" : "stop");
  });

  test("a message that announces a call and has none is a whole one", () => {
    const { generation } = read(stream(start, textBlock(0), text(0, "a"), stop(0), ending("tool_use"), last));
    expect(generation).toMatchObject({ end: { kind: "done" }, choices: [{ text: "a", finish: { reason: "stop" } }] });
  });

  test("a page in place of a stream is the error", () => {
    expect(read("<html><title>502 Bad Gateway</title></html>").generation.end).toMatchObject({
      failure: { message: "502 Bad Gateway" },
    });
  });
});

test("a whole message, asked for or not", () => {
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [
      { type: "thinking", thinking: "Hm.", signature: "sig" },
      { type: "text", text: "a", citations: [{ type: "char_location", cited_text: "c" }] },
      { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage,
  };
  const expected = {
    choices: [
      {
        parts: [
          { type: "reasoning", text: "Hm.", state: { kind: "signature", value: "sig" } },
          { type: "text", text: "a", annotations: [{ citedText: "c" }] },
          { type: "tool-call", arguments: '{"a":1}' },
        ],
        finish: { reason: "tool-calls" },
      },
    ],
    usage: { promptTokens: 10, completionTokens: 1 },
    end: { kind: "done" },
  };
  expect(accumulate(readResponseBody(JSON.stringify(message), newReader()))).toMatchObject(expected);
  expect(read(JSON.stringify(message)).generation).toMatchObject(expected);
  expect(
    accumulate(readResponseBody('{"type":"error","error":{"type":"api_error","message":"x"}}', newReader())),
  ).toMatchObject({
    end: { failure: { message: "x" } },
  });
});

describe("for every stream", () => {
  const index = fc.constantFrom(0, 1, 2, undefined);
  const text = fc.constantFrom("", "a", "{", '{"a":1}', "}");
  const anyDelta = fc.oneof(
    text.map((text): Json => ({ type: "text_delta", text })),
    text.map((thinking): Json => ({ type: "thinking_delta", thinking })),
    text.map((partial_json): Json => ({ type: "input_json_delta", partial_json })),
    fc.constant<Json>({ type: "signature_delta", signature: "s" }),
    fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>,
  );
  const anyBlock = fc.constantFrom<Json>(
    { type: "text", text: "" },
    { type: "thinking", thinking: "" },
    { type: "tool_use", id: "t", name: "f", input: {} },
    { type: "server_tool_use", id: "s", name: "web_search", input: {} },
    { type: "odd" },
  );
  const anyEvent = fc.oneof(
    fc.constantFrom<Json>(start, last, { type: "ping" }, ending("end_turn"), ending("tool_use"), { type: "new" }),
    fc
      .tuple(index, anyBlock)
      .map(([index, content_block]): Json => ({ type: "content_block_start", index, content_block })),
    fc.tuple(index, anyDelta).map(([index, delta]): Json => ({ type: "content_block_delta", index, delta })),
    index.map((index): Json => ({ type: "content_block_stop", index })),
  );

  test("the events are in the waist's order, and end once", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), fc.nat(), (sent, cut) => {
        const whole = stream(...sent);
        const { events } = read(whole);
        expectOrder(events);
        const reader = newReader();
        const at = cut % (whole.length + 1);
        expect([...reader.push(whole.slice(0, at)), ...reader.push(whole.slice(at)), ...reader.end()]).toEqual(events);
      }),
      { numRuns: 1000 },
    );
  });

  // A hosted call without arguments had the text "" when it came without a delta, and "{}" when it had some.
  test("a hosted call without arguments has an empty object", () => {
    const use = { type: "server_tool_use", id: "s", name: "web_search", input: {} };
    const start = { type: "content_block_start", index: 0, content_block: use };
    const stop = { type: "content_block_stop", index: 0 };
    const { generation } = read(stream(start, stop, ending("end_turn"), last));
    expect(generation.choices[0]?.parts).toMatchObject([{ name: "web_search", arguments: "{}" }]);
  });

  test("what is read and written again reads the same", () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), (sent) => {
        const { events, generation } = read(stream(...sent, ending("end_turn"), last));
        if (generation.end.kind !== "done") return;
        const writer = new MessageStreamWriter({
          profile: lean,
          created: 0,
          model: "m",
          settings: {},
          random: () => 0,
          id: "msg_01",
          options: { requestId: "req_1", reasoning: "shown" },
        });
        const again = read(writer.write(events));
        expect(again.repairs).toEqual([]);
        expect(said(again.generation)).toEqual(said(generation));
      }),
      { numRuns: 1000 },
    );
  });
});

/** What a message says, without what a writer adds or leaves out: empty parts, signatures of its own. */
function said({ choices: [choice] }: Generation): unknown {
  const parts = (choice?.parts ?? []).flatMap((part): unknown[] => {
    if (part.type === "text") return part.text === "" ? [] : [part.text];
    if (part.type === "reasoning") return part.text === "" ? [] : [{ reasoning: part.text }];
    return part.type === "tool-call" ? [{ ...part, id: null }] : [part];
  });
  return { parts, finish: choice?.finish };
}

function expectOrder(events: readonly GenerationEvent[]): void {
  let call: number | null = null;
  let calls = 0;
  let finished = false;
  for (const [at, event] of events.entries()) {
    expect(event.type === "end").toBe(at === events.length - 1);
    if (event.type === "start") expect(events.findIndex(({ type }) => type === "start")).toBe(at);
    if (event.type.endsWith("-delta") || event.type.startsWith("tool-call")) expect(finished).toBe(false);
    if (event.type === "tool-call-start") {
      expect([call, event.index]).toEqual([null, calls++]);
      call = event.index;
    } else if (event.type === "tool-call-delta") expect(event.index).toBe(call);
    else if (event.type === "tool-call-end") {
      expect(event.index).toBe(call);
      call = null;
    } else if (event.type !== "markup" && event.type !== "usage" && event.type !== "end") expect(call).toBeNull();
    finished ||= event.type === "finish";
  }
}

test("50,000 blocks that wait for a call's input, with a delta each, are read in linear time", () => {
  // The list of waiting blocks was searched for each delta, and the end of each block read the next one within its own call, which
  // exceeded the stack.
  const count = 50_000;
  const waiting = Array.from({ length: count }, (_, at) => [textBlock(at + 1), text(at + 1, "a"), stop(at + 1)]).flat();
  const continued = Array.from({ length: count }, () => json(0, " "));
  const events = [
    start,
    callBlock(0),
    json(0, "{"),
    waiting,
    continued,
    json(0, "}"),
    stop(0),
    ending("tool_use"),
    last,
  ];
  const generation = accumulate(
    newReader().push(
      events
        .flat()
        .map((event) => stream(event))
        .join(""),
    ),
  );
  expect(generation.end).toEqual({ kind: "done" });
  expect(partsOf(generation)).toHaveLength(count + 1);
});

// Two calls got the same id: a new one was not compared with those before it, and results are matched by it.
test("calls without an id get ids that differ, although the caller's function repeats itself", () => {
  const reader = new MessageReader({ newCallId: () => "x" });
  const calls = [0, 1, 2].flatMap((index) => [callBlock(index, index === 1 ? "x_3" : ""), stop(index)]);
  const events = [
    ...reader.push(stream(start, ...calls, ending("tool_use"), { type: "message_stop" })),
    ...reader.end(),
  ];
  expect(accumulate(events).choices[0]?.toolCalls.map(({ id }) => id)).toEqual(["x", "x_3", "x_4"]);
});
