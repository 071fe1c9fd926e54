import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent, GenerationFailure } from "../../core/events.ts";
import { exact, lean } from "../profile.ts";
import type { Profile } from "../profile.ts";
import type { MessageContext, ReasoningDisplay } from "./write.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { messageId, messagesRequestId, toolUseId } from "./ids.ts";
import { MessageReader } from "./read.ts";
import { writeMessageResponse } from "./write.ts";
import { openSeal } from "../turn-seal.ts";
import { MessageStreamWriter } from "./write-stream.ts";

const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const usage: GenerationEvent = {
  type: "usage",
  usage: { promptTokens: 12, completionTokens: 0, promptDetails: { cached_tokens: 8 } },
};
const text = (words: string): GenerationEvent => ({ type: "text-delta", choice: 0, text: words });
const reasoning = (words: string): GenerationEvent => ({ type: "reasoning-delta", choice: 0, text: words });
const finish = (reason: "stop" | "length" | "tool-calls" | "content-filter"): GenerationEvent => ({
  type: "finish",
  choice: 0,
  reason,
});
const callStart: GenerationEvent = { type: "tool-call-start", choice: 0, index: 0, id: "toolu_1", name: "f" };
const callDelta = (json: string): GenerationEvent => ({
  type: "tool-call-delta",
  choice: 0,
  index: 0,
  arguments: json,
});
const callEnd: GenerationEvent = { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" };
const failure: GenerationFailure = { kind: "overloaded", message: "The queue is full.", status: 503 };
const failed: GenerationEvent = { type: "end", end: { kind: "engine-error", failure } };

function contextOf(profile: Profile = lean, reasoning: ReasoningDisplay = "shown"): MessageContext {
  return {
    profile,
    created: 1_786_000_000,
    model: "m",
    settings: {},
    random: () => 0.5,
    options: { requestId: "req_1", reasoning },
    id: "msg_01",
  };
}

function written(events: readonly GenerationEvent[], context: MessageContext = contextOf()): string {
  const writer = new MessageStreamWriter(context);
  return events.map((event) => writer.write([event])).join("");
}

/** A stream of profile `exact` without the members that profile `lean` leaves out. */
const withoutNulls = (stream: string) => stream.replaceAll(/,"(container|diagnostics)":null/g, "");

type Json = { [name: string]: unknown };

/** What a client makes of the stream, as Anthropic's SDKs do it; and its checks: one block after another, in their order. */
function message(stream: string): Json & { content: Json[] } {
  let whole: (Json & { content: Json[] }) | undefined;
  let open: number | null = null;
  let json = "";
  for (const frame of stream.split("\n\n").filter(Boolean)) {
    const [name, data = ""] = frame.split("\ndata: ");
    const event = JSON.parse(data) as Json & { message: Json & { content: Json[] }; content_block: Json; delta: Json };
    expect(name).toBe(`event: ${String(event["type"])}`);
    if (event["type"] === "message_start") whole = event.message;
    if (!whole) continue;
    const block = open === null ? {} : (whole.content[open] ?? {});
    if (event["type"] === "content_block_start") {
      expect(open).toBeNull();
      open = whole.content.length;
      expect(event["index"]).toBe(open);
      whole.content.push(event.content_block);
      json = "";
    } else if (event["type"] === "content_block_delta") {
      expect(event["index"]).toBe(open);
      const { text, thinking, signature, partial_json, citation } = event.delta as Record<string, string>;
      if (text !== undefined) block["text"] = String(block["text"]) + text;
      if (thinking !== undefined) block["thinking"] = String(block["thinking"]) + thinking;
      if (signature !== undefined) block["signature"] = signature;
      if (citation !== undefined) block["citations"] = [...((block["citations"] as unknown[]) ?? []), citation];
      json += partial_json ?? "";
    } else if (event["type"] === "content_block_stop") {
      expect(event["index"]).toBe(open);
      if (json !== "") block["input"] = JSON.parse(json);
      open = null;
    } else if (event["type"] === "message_delta") {
      Object.assign(whole, event.delta);
      Object.assign(whole["usage"] as Json, event["usage"]);
    }
  }
  return whole ?? { content: [] };
}

describe("the events of a message", () => {
  test("a text, to the byte", () => {
    expect(
      written([
        usage,
        { type: "start", choice: 0 },
        text("Hel"),
        text("lo"),
        finish("stop"),
        { type: "usage", usage: { promptTokens: 12, completionTokens: 2, promptDetails: { cached_tokens: 8 } } },
        done,
      ]),
    ).toBe(
      [
        'event: message_start\ndata: {"type":"message_start","message":{"model":"m","id":"msg_01","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":0,"service_tier":"standard","inference_geo":"not_available"}}}',
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        'event: ping\ndata: {"type": "ping"}',
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}',
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"lo"}}',
        'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}',
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":2}}',
        'event: message_stop\ndata: {"type":"message_stop"}',
        "",
      ].join("\n\n"),
    );
  });

  test("in profile exact every event but ping has spaces before its last brace", () => {
    const stream = written([{ type: "start", choice: 0 }, text("Hi"), finish("stop"), done], contextOf(exact));
    expect(stream).toContain('"delta":{"type":"text_delta","text":"Hi"}        }\n\n');
    expect(stream).toContain('{"type":"message_stop"        }\n\n');
    expect(stream).toContain('data: {"type": "ping"}\n\n');
    const plain = written([{ type: "start", choice: 0 }, text("Hi"), finish("stop"), done]);
    expect(withoutNulls(stream.replace(/ {8}\}$/gm, "}"))).toBe(plain);
  });

  test("profile exact has the members that are null since September 2026, profile lean only those with a value", () => {
    const nulls = { container: null, diagnostics: null };
    const native: GenerationEvent = {
      type: "extra",
      place: "chunk",
      dialect: "messages",
      value: { ...nulls, input_transformations: [{ reason: "r", path: "p", type: "t" }] },
    };
    const ending = [text("Hi"), finish("stop"), done];
    const exactStream = written([{ type: "start", choice: 0 }, ...ending], contextOf(exact));
    expect(exactStream).toContain('"content":[],"container":null,"stop_reason":null,');
    expect(exactStream).toContain('"inference_geo":"not_available"},"diagnostics":null}');
    expect(exactStream).toContain(
      '"delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null,"container":null},',
    );
    expect(written([{ type: "start", choice: 0 }, ...ending])).not.toMatch(/container|diagnostics/);
    // Of an upstream of this API, both profiles keep them.
    expect(written([{ type: "start", choice: 0 }, native, ...ending])).toContain(
      '"inference_geo":"not_available"},"input_transformations":[{"type":"t","path":"p","reason":"r"}],"diagnostics":null}',
    );
    const diagnostics = { cache_miss_reason: { cache_missed_input_tokens: 3701, type: "tools_changed" } };
    expect(written([{ ...native, value: { diagnostics } }, ...ending])).toContain(
      '"diagnostics":{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":3701}}}',
    );
  });

  test("thinking tokens are counted where thinking is on, and never in message_start", () => {
    const usage = (thinking: number): GenerationEvent => ({
      type: "usage",
      usage: { promptTokens: 4, completionTokens: 2, completionDetails: { reasoning_tokens: thinking } },
    });
    const counts = (context: MessageContext, thinking: number) =>
      written([usage(thinking), { type: "start", choice: 0 }, text("Hi"), finish("stop"), done], context).match(
        /"(message_start|message_delta|output_tokens_details)"/g,
      );
    const events = ['"message_start"', '"message_delta"'];
    expect(counts(contextOf(exact, "hidden"), 0)).toEqual(events);
    expect(counts(contextOf(exact, "shown"), 0)).toEqual([...events, '"output_tokens_details"']);
    expect(counts(contextOf(exact, "hidden"), 3)).toEqual([...events, '"output_tokens_details"']);
  });

  // A gateway wrote `caller: {type: "direct"}` for every call, and no toolset_name.
  test("a call keeps the caller and the toolset that an upstream of this API sends", () => {
    const block = { type: "tool_use", id: "toolu_1", name: "click", input: {} };
    const native = { caller: { type: "code_execution_20260120", tool_id: "srvtoolu_1" }, toolset_name: "browser" };
    const reader = new MessageReader({ newCallId: () => "toolu_new" });
    const events = readResponseBody(
      JSON.stringify({ content: [{ ...block, ...native }], stop_reason: "tool_use" }),
      reader,
    );
    expect(message(written(events)).content).toEqual([{ ...block, ...native }]);
    expect(JSON.parse(writeMessageResponse(accumulate(events), contextOf()))).toMatchObject({
      content: [{ ...block, ...native }],
    });
  });

  test("nothing shows before the first delta, so that an early failure keeps its status", () => {
    expect(written([usage, { type: "start", choice: 0 }, { type: "part-start", choice: 0, kind: "text" }])).toBe("");
  });

  test("an empty answer has no block and no ping", () => {
    const stream = written([{ type: "start", choice: 0 }, { ...finish("stop"), stop: "END" } as GenerationEvent, done]);
    expect(stream.match(/^event: .*$/gm)).toEqual([
      "event: message_start",
      "event: message_delta",
      "event: message_stop",
    ]);
    expect(message(stream)).toMatchObject({ content: [], stop_reason: "stop_sequence", stop_sequence: "END" });
  });

  test("a call: the first delta is empty, the others are the model's own", () => {
    const stream = written([callStart, callDelta('{"a":'), callDelta("1}"), callEnd, finish("tool-calls"), done]);
    expect(stream.match(/"partial_json":.*$/gm)).toEqual([
      '"partial_json":""}}',
      '"partial_json":"{\\"a\\":"}}',
      '"partial_json":"1}"}}',
    ]);
    expect(message(stream)).toMatchObject({
      content: [{ type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 }, caller: { type: "direct" } }],
      stop_reason: "tool_use",
    });
  });

  test("a call without arguments has the empty delta only", () => {
    const stream = written([callStart, callDelta("{"), callDelta(" }"), callEnd, finish("tool-calls"), done]);
    expect(stream.match(/partial_json/g)).toHaveLength(1);
    expect(message(stream).content).toMatchObject([{ input: {} }]);
  });

  // Claude Code runs a tool as soon as its block is closed, even if an error follows: the first of two calls was run, and run again.
  test("a call is not closed before the finish shows that the answer is whole", () => {
    const call = [callStart, callDelta("{}"), callEnd];
    const second: GenerationEvent = { type: "tool-call-start", choice: 0, index: 1, id: "toolu_2", name: "g" };
    for (const after of [[], [usage], [text("and")], [second]]) {
      expect(written([...call, ...after])).not.toContain("content_block_stop");
      expect(written([...call, ...after, failed])).not.toContain("content_block_stop");
    }
    expect(written([...call, finish("tool-calls")])).toContain("content_block_stop");
    const deltaOfSecond: GenerationEvent = { type: "tool-call-delta", choice: 0, index: 1, arguments: "[]" };
    const endOfSecond: GenerationEvent = { type: "tool-call-end", choice: 0, index: 1, status: "succeeded" };
    const more: GenerationEvent[] = [text("and"), second, deltaOfSecond, endOfSecond];
    expect(message(written([...call, ...more, finish("tool-calls"), done])).content).toMatchObject([
      { type: "tool_use", name: "f" },
      { type: "text", text: "and" },
      { type: "tool_use", name: "g" },
    ]);
  });

  test("the events that wait for a call are limited", () => {
    const stream = written([callStart, callDelta("{}"), callEnd, text("x".repeat(4 * 1024 * 1024 + 1))]);
    expect(stream).toContain("content_block_stop");
  });

  test("a call that the limit cuts is never closed", () => {
    const stream = written([callStart, callDelta('{"a'), finish("length"), done]);
    expect(stream).not.toContain("content_block_stop");
    expect(stream).toContain('"stop_reason":"max_tokens"');
    // A source that ends it all the same (OpenAI's dialect has no way to leave it open) must not make clients run it.
    const ended: GenerationEvent = { type: "tool-call-end", choice: 0, index: 0, status: "failed" };
    expect(written([callStart, callDelta('{"a'), ended, finish("length"), done])).toBe(stream);
  });

  test("a failure is an error event, and the last", () => {
    const stream = written([text("Hi"), failed, text("more"), done]);
    expect(stream).toMatch(
      /event: error\ndata: \{"type":"error","error":\{"type":"overloaded_error","message":"Overloaded"\},"request_id":"req_1"\}\n\n$/,
    );
  });

  test("opened early, the message begins once; silence is a ping", () => {
    const writer = new MessageStreamWriter(contextOf());
    expect(writer.open()).toMatch(/^event: message_start/);
    expect(writer.open()).toBe("");
    expect(writer.keepAlive()).toBe('event: ping\ndata: {"type": "ping"}\n\n');
    expect(writer.write([text("Hi"), finish("stop"), done])).not.toContain("message_start");
  });

  test("why it ended", () => {
    const reasonOf = (...events: GenerationEvent[]) => message(written([...events, done]));
    expect(reasonOf(text("a"), finish("length"))).toMatchObject({ stop_reason: "max_tokens" });
    expect(reasonOf(text("a"), { type: "finish", choice: 0, reason: "length", limit: "context" })).toMatchObject({
      stop_reason: "model_context_window_exceeded",
    });
    const refusal = { stop_reason: "refusal", stop_details: { type: "refusal", category: null, explanation: null } };
    expect(reasonOf(finish("content-filter"))).toMatchObject(refusal);
    expect(reasonOf({ type: "refusal-delta", choice: 0, text: "No." }, finish("stop"))).toMatchObject({
      ...refusal,
      content: [{ type: "text", text: "No." }],
    });
  });
});

describe("reasoning", () => {
  const thinking = [reasoning("Hm"), reasoning("m."), text("Hi"), finish("stop"), done];

  test("shown: the text, then a signature of ours", () => {
    const [block] = message(written(thinking)).content;
    expect(block).toMatchObject({ type: "thinking", thinking: "Hmm." });
    expect(openSeal.open(String(block?.["signature"]))).toEqual({});
  });

  test("omitted: no text, and the signature contains the reasoning for the next turn", () => {
    const stream = written(thinking, contextOf(lean, "omitted"));
    expect(stream).not.toContain("thinking_delta");
    const [block] = message(stream).content;
    expect(block).toMatchObject({ type: "thinking", thinking: "" });
    expect(openSeal.open(String(block?.["signature"]))).toEqual({ text: "Hmm." });
  });

  test("hidden: no block", () => {
    expect(message(written(thinking, contextOf(lean, "hidden"))).content).toEqual([{ type: "text", text: "Hi" }]);
  });

  test("the source's own signature is passed on, and what it redacted", () => {
    const stream = written([
      { type: "part-start", choice: 0, kind: "reasoning" },
      reasoning("a"),
      { type: "part-end", choice: 0, state: { kind: "signature", value: "sig" } },
      { type: "part-start", choice: 0, kind: "reasoning" },
      { type: "part-end", choice: 0, state: { kind: "redacted", value: "sealed" } },
      { type: "part-start", choice: 0, kind: "reasoning" },
      { type: "part-end", choice: 0, state: { kind: "signature", value: "only" } },
      text("b"),
      finish("stop"),
      done,
    ]);
    expect(message(stream).content).toEqual([
      { type: "thinking", thinking: "a", signature: "sig" },
      { type: "redacted_thinking", data: "sealed" },
      { type: "thinking", thinking: "", signature: "only" },
      { type: "text", text: "b" },
    ]);
  });

  test("what another API sealed comes back with its id", () => {
    const stream = written([
      { type: "part-start", choice: 0, kind: "reasoning", id: "rs_1" },
      { type: "reasoning-delta", choice: 0, text: "first", summary: 0 },
      { type: "reasoning-delta", choice: 0, text: "second", summary: 1 },
      { type: "part-end", choice: 0, state: { kind: "encrypted", value: "enc" } },
      finish("stop"),
      done,
    ]);
    const [block] = message(stream).content;
    expect(block?.["thinking"]).toBe("first\n\nsecond");
    expect(openSeal.open(String(block?.["signature"]))).toEqual({
      state: { kind: "encrypted", value: "enc" },
      id: "rs_1",
    });
  });
});

test("a citation and a block of a server's tool go on as they came", () => {
  const citation = { type: "char_location", cited_text: "x", document_index: 0 };
  const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } };
  const result = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
  const item = (value: Readonly<Record<string, unknown>>): GenerationEvent => ({
    type: "extra",
    choice: 0,
    place: "item",
    dialect: "messages",
    value,
  });
  const events: GenerationEvent[] = [
    item(search),
    item(result),
    { type: "annotation", choice: 0, annotation: { native: { dialect: "messages", value: citation } } },
    text("so"),
    { type: "extra", place: "chunk", dialect: "messages", value: { stop_reason: "pause_turn" } },
    finish("stop"),
    done,
  ];
  const expected = {
    content: [search, result, { citations: [citation], type: "text", text: "so" }],
    stop_reason: "pause_turn",
  };
  expect(message(written(events))).toMatchObject(expected);
  expect(JSON.parse(writeMessageResponse(accumulate(events), contextOf()))).toMatchObject(expected);
});

test("arguments that are not an object are in the member INVALID_JSON", () => {
  const events: GenerationEvent[] = [
    callStart,
    callDelta("{a: 1"),
    { type: "tool-call-end", choice: 0, index: 0, status: "failed" },
    finish("tool-calls"),
    done,
  ];
  expect(JSON.parse(writeMessageResponse(accumulate(events), contextOf()))).toMatchObject({
    content: [{ type: "tool_use", input: { INVALID_JSON: "{a: 1" } }],
  });
});

test("ids are in Anthropic's form", () => {
  // A request of 2026-10-05 was recorded with the id req_011Cfjfmk6XgrPsmdeck2qEE.
  expect(messagesRequestId(Date.parse("2026-10-05T20:00Z"), Math.random)).toMatch(/^req_011Cf[a-zA-Z0-9]{19}$/);
  expect(messageId(1_786_000_000, Math.random)).toMatch(/^msg_011C[1-9A-HJ-NP-Za-km-z]{20}$/);
  expect(toolUseId(Math.random)).toMatch(/^toolu_01[1-9A-HJ-NP-Za-km-z]{22}$/);
  const [inLean, inExact] = [lean, exact].map((profile) =>
    message(
      written(
        [{ ...callStart, id: "call_1" } as GenerationEvent, callEnd, finish("tool-calls"), done],
        contextOf(profile),
      ),
    ),
  );
  expect(inLean?.content).toMatchObject([{ id: "call_1" }]);
  expect(inExact?.content).toMatchObject([{ id: expect.stringMatching(/^toolu_01.{22}$/) as string }]);
});

// The two writers of one message agree, however the events are cut into batches.
test("for every generation: the stream, put together, is the whole message", () => {
  const words = fc.string({ minLength: 1, maxLength: 8, unit: "grapheme" });
  const part = fc.oneof(
    words.map((words) => [text(words)]),
    words.map((words) => [reasoning(words)]),
    fc.record({ text: words, signature: fc.option(words, { nil: undefined }) }).map(({ text, signature }) => [
      { type: "part-start", choice: 0, kind: "reasoning" } as const,
      reasoning(text),
      {
        type: "part-end",
        choice: 0,
        ...(signature !== undefined && { state: { kind: "signature", value: signature } as const }),
      } as const,
    ]),
    words.map((encrypted): GenerationEvent[] => [
      { type: "part-start", choice: 0, kind: "reasoning" },
      { type: "part-end", choice: 0, state: { kind: "redacted", value: encrypted } },
    ]),
    words.map((words): GenerationEvent[] => [{ type: "part-start", choice: 0, kind: "text" }, text(words)]),
    words.map((refusal): GenerationEvent[] => [{ type: "refusal-delta", choice: 0, text: refusal }]),
    fc
      .tuple(fc.dictionary(words, fc.jsonValue(), { maxKeys: 2 }), fc.nat(20))
      .map(([input, cut]): GenerationEvent[] => {
        const json = JSON.stringify(input);
        return [callStart, callDelta(json.slice(0, cut)), callDelta(json.slice(cut)), callEnd];
      }),
  );
  const numbered = (events: GenerationEvent[]) => {
    let calls = -1;
    return events.map((event): GenerationEvent => {
      if (event.type === "tool-call-start") return { ...event, index: ++calls, id: `toolu_${calls}` };
      return event.type === "tool-call-delta" || event.type === "tool-call-end" ? { ...event, index: calls } : event;
    });
  };
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 6 }),
      fc.constantFrom<ReasoningDisplay>("shown", "omitted", "hidden"),
      fc.constantFrom(lean, exact),
      (parts, reasoning, profile) => {
        const events = numbered([{ type: "start", choice: 0 }, ...parts.flat(), finish("stop"), usage, done]);
        const context = contextOf(profile, reasoning);
        const whole: unknown = JSON.parse(writeMessageResponse(accumulate(events), context));
        expect(message(written(events, context))).toEqual(whole);
        expect(new MessageStreamWriter(context).write(events)).toBe(written(events, context));
      },
    ),
  );
});
