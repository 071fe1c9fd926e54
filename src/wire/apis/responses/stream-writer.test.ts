import { describe, expect, test } from "vitest";
import {
  responseContext,
  responseEvents,
  responseOptions,
  responseWriter,
  typesOf,
  writtenResponse,
} from "../../../../test/support/response-stream.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent, GenerationFailure } from "../../core/events.ts";
import { exact, lean } from "../profile.ts";
import { openSeal } from "../turn-seal.ts";
import { writeResponse } from "./response-writer.ts";

const start: GenerationEvent = { type: "start", choice: 0 };
const text = (text: string): GenerationEvent => ({ type: "text-delta", choice: 0, text });
const reasoning = (text: string): GenerationEvent => ({ type: "reasoning-delta", choice: 0, text });
const finish = (reason: "stop" | "length" | "tool-calls"): GenerationEvent => ({ type: "finish", choice: 0, reason });
const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const usage: GenerationEvent = {
  type: "usage",
  usage: { promptTokens: 5, completionTokens: 2, promptDetails: { cached_tokens: 1 } },
};
const call = (index: number, name: string, ...chunks: string[]): GenerationEvent[] => [
  { type: "tool-call-start", choice: 0, index, id: `call_${index}`, name },
  ...chunks.map((chunk): GenerationEvent => ({ type: "tool-call-delta", choice: 0, index, arguments: chunk })),
  { type: "tool-call-end", choice: 0, index, status: "succeeded" },
];
const failure: GenerationFailure = { kind: "bad-answer", message: "The source broke.", status: 502 };
const broken: GenerationEvent = { type: "end", end: { kind: "upstream-error", failure } };

const id = (prefix: string, time: string): string =>
  `${prefix}${"0".repeat(16)}00${time}0000${"8190"}${"8"}${"0".repeat(15)}`;
const response = id("resp_", "6b49d200");
const message = id("msg_", "6b49d207");

test("a text in profile exact, to the byte", () => {
  const stream = writtenResponse([[start, text("Hel")], [text("lo")], [finish("stop"), usage, done]], exact);
  const echo = (status: string, completed: string, output: string, tier: string, counts: string): string =>
    `{"id":"${response}","object":"response","created_at":1800000000,"status":"${status}","access_programs":null,"background":false,"completed_at":${completed},` +
    '"error":null,"frequency_penalty":0.0,"incomplete_details":null,"instructions":null,"max_output_tokens":null,"max_tool_calls":null,' +
    `"model":"tiny","moderation":null,"output":[${output}],"parallel_tool_calls":true,"presence_penalty":0.0,"previous_response_id":null,` +
    '"prompt_cache_key":null,"prompt_cache_retention":"in_memory","reasoning":{"context":null,"effort":null,"summary":null},' +
    `"safety_identifier":null,"service_tier":"${tier}","store":true,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},` +
    '"tool_choice":"auto","tool_usage":{"image_gen":{"input_tokens":0,"input_tokens_details":{"image_tokens":0,"text_tokens":0},' +
    '"output_tokens":0,"output_tokens_details":{"image_tokens":0,"text_tokens":0},"total_tokens":0},"web_search":{"num_requests":0}},' +
    `"tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":${counts},"user":null,"metadata":{}}`;
  const item = (status: string, content: string): string =>
    `{"id":"${message}","type":"message","status":"${status}","content":[${content}],"role":"assistant"}`;
  const part = (words: string): string => `{"type":"output_text","annotations":[],"logprobs":[],"text":"${words}"}`;
  const begun = echo("in_progress", "null", "", "auto", "null");
  const whole = item("completed", part("Hello"));
  const counts =
    '{"input_tokens":5,"input_tokens_details":{"cache_write_tokens":0,"cached_tokens":1},"output_tokens":2,' +
    '"output_tokens_details":{"reasoning_tokens":0},"total_tokens":7}';
  const at = `"item_id":"${message}"`;
  const expected = [
    `{"type":"response.created","response":${begun},"sequence_number":0}`,
    `{"type":"response.in_progress","response":${begun},"sequence_number":1}`,
    `{"type":"response.output_item.added","item":${item("in_progress", "")},"output_index":0,"sequence_number":2}`,
    `{"type":"response.content_part.added","content_index":0,${at},"output_index":0,"part":${part("")},"sequence_number":3}`,
    `{"type":"response.output_text.delta","content_index":0,"delta":"Hel",${at},"logprobs":[],"obfuscation":"${"0".repeat(13)}","output_index":0,"sequence_number":4}`,
    `{"type":"response.output_text.delta","content_index":0,"delta":"lo",${at},"logprobs":[],"obfuscation":"${"0".repeat(14)}","output_index":0,"sequence_number":5}`,
    `{"type":"response.output_text.done","content_index":0,${at},"logprobs":[],"output_index":0,"sequence_number":6,"text":"Hello"}`,
    `{"type":"response.content_part.done","content_index":0,${at},"output_index":0,"part":${part("Hello")},"sequence_number":7}`,
    `{"type":"response.output_item.done","item":${whole},"output_index":0,"sequence_number":8}`,
    `{"type":"response.completed","response":${echo("completed", "1800000007", whole, "default", counts)},"sequence_number":9}`,
  ];
  const typeOf = (data: string): string => data.slice(9, data.indexOf('"', 9));
  expect(stream).toBe(expected.map((data) => `event: ${typeOf(data)}\ndata: ${data}\n\n`).join(""));
});

test("profile lean ends with [DONE], hides no lengths and leaves out what only OpenAI means", () => {
  const stream = writtenResponse([[start, text("Hi"), finish("stop"), done]], lean);
  expect(stream.endsWith("}\n\ndata: [DONE]\n\n")).toBe(true);
  expect(stream).not.toMatch(/obfuscation|moderation|tool_usage|billing/);
});

describe("sequences", () => {
  const opening = ["created", "in_progress"];
  const spoken = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"];
  const called = ["function_call_arguments.delta", "function_call_arguments.done"];

  test("two calls, strictly one after the other", () => {
    const stream = writtenResponse(
      [
        [start, ...call(0, "a", '{"x":', "1}")],
        [...call(1, "b", "{}"), finish("tool-calls"), done],
      ],
      exact,
    );
    expect(typesOf(stream)).toEqual([
      ...opening,
      "output_item.added",
      "function_call_arguments.delta",
      ...called,
      "output_item.done",
      "output_item.added",
      ...called,
      "output_item.done",
      "completed",
    ]);
    const items = responseEvents(stream).filter(({ type }) => type === "response.output_item.done");
    expect(items.map(({ output_index }) => output_index)).toEqual([0, 1]);
    expect(items[0]?.["item"]).toEqual({
      id: expect.stringMatching(/^fc_/),
      type: "function_call",
      status: "completed",
      arguments: '{"x":1}',
      call_id: "call_0",
      name: "a",
    });
  });

  test("reasoning as it is, then the text", () => {
    const stream = writtenResponse([[start, reasoning("Hm"), text("Hi"), finish("stop"), done]], exact);
    expect(typesOf(stream)).toEqual([
      ...opening,
      "output_item.added",
      "content_part.added",
      "reasoning_text.delta",
      "reasoning_text.done",
      "content_part.done",
      "output_item.done",
      "output_item.added",
      ...spoken,
      "output_item.done",
      "completed",
    ]);
    expect(responseEvents(stream)[7]?.["item"]).toEqual({
      id: expect.stringMatching(/^rs_/),
      type: "reasoning",
      content: [{ type: "reasoning_text", text: "Hm" }],
      summary: [],
    });
  });

  test("reasoning as a summary and encrypted, if the request asks for it", () => {
    const asked = { reasoning: { summary: "auto" }, include: ["reasoning.encrypted_content"] };
    const stream = writtenResponse([[start, reasoning("Hm"), text("Hi"), finish("stop"), done]], exact, asked);
    expect(typesOf(stream).slice(2, 8)).toEqual([
      "output_item.added",
      "reasoning_summary_part.added",
      "reasoning_summary_text.delta",
      "reasoning_summary_text.done",
      "reasoning_summary_part.done",
      "output_item.done",
    ]);
    const item = responseEvents(stream)[7]?.["item"] as { encrypted_content: string };
    expect(item).toMatchObject({ content: [], summary: [{ type: "summary_text", text: "Hm" }] });
    expect(openSeal.open(item.encrypted_content)).toEqual({ text: "Hm" });
  });

  test("a source's own reasoning keeps its id, its encrypted content and the parts of its summary", () => {
    const summary = (part: number, text: string): GenerationEvent => ({
      type: "reasoning-delta",
      choice: 0,
      text,
      summary: part,
    });
    const stream = writtenResponse(
      [
        [
          start,
          { type: "part-start", choice: 0, kind: "reasoning", id: "rs_0123456789abcdef" },
          summary(0, "One"),
          summary(1, "Two"),
          { type: "part-end", choice: 0, state: { kind: "encrypted", value: "gAAAA" } },
          finish("stop"),
          done,
        ],
      ],
      exact,
      { include: ["reasoning.encrypted_content"] },
    );
    const item = responseEvents(stream).find(({ type }) => type === "response.output_item.done")?.["item"];
    expect(item).toEqual({
      id: "rs_0123456789abcdef",
      type: "reasoning",
      content: [],
      encrypted_content: "gAAAA",
      summary: [
        { type: "summary_text", text: "One" },
        { type: "summary_text", text: "Two" },
      ],
    });
  });

  test("a refusal is a part of a message, without log probabilities or obfuscation", () => {
    const stream = writtenResponse(
      [[start, { type: "refusal-delta", choice: 0, text: "No." }, finish("stop"), done]],
      exact,
    );
    expect(typesOf(stream)).toEqual([
      ...opening,
      "output_item.added",
      "content_part.added",
      "refusal.delta",
      "refusal.done",
      "content_part.done",
      "output_item.done",
      "completed",
    ]);
    expect(Object.keys(responseEvents(stream)[4] ?? {})).toEqual([
      "type",
      "content_index",
      "delta",
      "item_id",
      "output_index",
      "sequence_number",
    ]);
  });

  test("a text that was cut is incomplete, and so is the response", () => {
    const stream = writtenResponse([[start, text("Hel"), finish("length"), usage, done]], exact);
    const [item, last] = responseEvents(stream).slice(-2);
    expect(item?.["item"]).toMatchObject({ status: "incomplete" });
    expect(last).toMatchObject({
      type: "response.incomplete",
      response: {
        status: "incomplete",
        completed_at: null,
        incomplete_details: { reason: "max_output_tokens" },
        usage: { input_tokens: 5 },
      },
    });
  });

  test("a call that was cut is incomplete; one that was whole when the limit came is not", () => {
    const cut = writtenResponse([[start, ...call(0, "a", '{"x').slice(0, 2), finish("length"), done]], exact);
    expect(responseEvents(cut).at(-2)?.["item"]).toMatchObject({ status: "incomplete", arguments: '{"x' });
    // Readers of local models end a cut call as failed before they report the limit; it was written as completed, with half an object.
    const failed: GenerationEvent = { type: "tool-call-end", choice: 0, index: 0, status: "failed" };
    const ended = writtenResponse([[start, ...call(0, "a", '{"x').slice(0, 2), failed, finish("length"), done]], exact);
    expect(responseEvents(ended).at(-2)?.["item"]).toMatchObject({ status: "incomplete", arguments: '{"x' });
    const whole = writtenResponse([[start, ...call(0, "a", "{}"), finish("length"), done]], exact);
    expect(responseEvents(whole).at(-2)?.["item"]).toMatchObject({ status: "completed" });
  });

  test("a custom tool's call", () => {
    const stream = writtenResponse(
      [
        [
          start,
          { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "patch", kind: "custom" },
          { type: "tool-call-delta", choice: 0, index: 0, arguments: "*** Begin" },
          { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
          finish("tool-calls"),
          done,
        ],
      ],
      exact,
    );
    expect(typesOf(stream).slice(2, 6)).toEqual([
      "output_item.added",
      "custom_tool_call_input.delta",
      "custom_tool_call_input.done",
      "output_item.done",
    ]);
    expect(responseEvents(stream)[5]?.["item"]).toEqual({
      id: expect.stringMatching(/^ctc_/),
      type: "custom_tool_call",
      status: "completed",
      call_id: "call_0",
      input: "*** Begin",
      name: "patch",
    });
  });

  test("a tool of a group is called by its own name, with the group's apart", () => {
    const inside = { type: "function", name: "read", parameters: { type: "object", properties: {} } };
    const tools = [{ type: "namespace", name: "files", description: "Files.", tools: [inside] }];
    const stream = writtenResponse([[start, ...call(0, "files__read", "{}"), finish("tool-calls"), done]], exact, {
      tools,
    });
    expect(responseEvents(stream).at(-2)?.["item"]).toMatchObject({ name: "read", namespace: "files" });
  });

  test("a search for tools that the client makes is a whole item, with its arguments as an object", () => {
    const tools = [{ type: "tool_search", execution: "client" }];
    const events = [start, ...call(0, "tool_search", '{"query":', '"a"}'), finish("tool-calls"), done];
    const stream = writtenResponse([events], exact, { tools });
    expect(typesOf(stream).slice(2, -1)).toEqual(["output_item.added", "output_item.done"]);
    const shown = responseEvents(stream).map(({ item }) => JSON.stringify(item));
    const item = (status: string, asked: string): RegExp =>
      new RegExp(
        `^{"id":"tsc_[0-9a-f]{50}","type":"tool_search_call","status":"${status}","arguments":${asked},"call_id":"call_0","execution":"client"}$`,
      );
    expect(shown[2]).toMatch(item("in_progress", "{}"));
    expect(shown[3]).toMatch(item("completed", '{"query":"a"}'));
    const broken = writtenResponse([[start, ...call(0, "tool_search", "who"), finish("tool-calls"), done]], exact, {
      tools,
    });
    expect(JSON.stringify(responseEvents(broken)[3]?.["item"])).toMatch(item("completed", "{}"));
  });

  test("log probabilities go with their text, and come rounded in the whole item", () => {
    const token = { token: "Hi", logprob: -0.000_000_193_612_649, bytes: [72, 105], top: [] };
    const stream = writtenResponse(
      [[start, { type: "text-delta", choice: 0, text: "Hi", logprobs: [token] }, finish("stop"), done]],
      exact,
      { include: ["message.output_text.logprobs"] },
    );
    const shown = (logprob: string): string =>
      `"logprobs":[{"bytes":[72,105],"logprob":${logprob},"token":"Hi","top_logprobs":[]}]`;
    const frames = stream.split("\n\n");
    expect(frames.filter((frame) => frame.includes(shown("-1.93612649e-7")))).toHaveLength(2);
    expect(frames.filter((frame) => frame.includes(shown("-0.0")))).toHaveLength(2);
  });

  test("the source of a text is in its part, and in an event of its own", () => {
    const annotation = { url: "https://a.example/", title: "A", start: 0, end: 2 };
    const stream = writtenResponse(
      [[start, text("Hi"), { type: "annotation", choice: 0, annotation }, finish("stop"), done]],
      exact,
    );
    const shown = { type: "url_citation", end_index: 2, start_index: 0, title: "A", url: "https://a.example/" };
    expect(responseEvents(stream)[5]).toMatchObject({
      type: "response.output_text.annotation.added",
      annotation: shown,
      annotation_index: 0,
    });
    expect(responseEvents(stream).at(-2)?.["item"]).toMatchObject({ content: [{ annotations: [shown] }] });
  });

  test("a hosted tool's item of a source that speaks Responses passes as it is; another API's does not", () => {
    const item = { id: "ws_1", type: "web_search_call", status: "completed", action: { type: "search", query: "q" } };
    const event = (dialect: string): GenerationEvent => ({
      type: "extra",
      choice: 0,
      place: "item",
      dialect,
      value: item,
    });
    const stream = writtenResponse([[start, event("responses"), event("messages"), finish("stop"), done]], exact);
    expect(typesOf(stream)).toEqual([...opening, "output_item.added", "output_item.done", "completed"]);
    expect(responseEvents(stream)[2]?.["item"]).toEqual({ ...item, status: "in_progress" });
    expect(responseEvents(stream)[3]?.["item"]).toEqual(item);
  });
});

describe("failures", () => {
  test("after the start: an error, and a response that failed", () => {
    const stream = writtenResponse([[start, text("Hel"), broken]], exact);
    const [error, last] = responseEvents(stream).slice(-2);
    expect(error).toEqual({
      type: "error",
      error: { type: "server_error", code: null, message: "The source broke.", param: null },
      sequence_number: 5,
    });
    expect(last).toMatchObject({
      type: "response.failed",
      response: {
        status: "failed",
        error: { code: "server_error", message: "The source broke." },
        output: [],
        usage: null,
        completed_at: null,
      },
      sequence_number: 6,
    });
  });

  // Codex runs a call as soon as it is complete, and again when the response fails after it.
  test("a call is complete only when something follows it", () => {
    const writer = responseWriter(exact);
    expect(writer.write([start, ...call(0, "a", "{}")])).not.toContain("output_item.done");
    const failed = writer.write([broken]);
    expect(failed).not.toContain("output_item.done");
    expect(failed).toContain("response.failed");
  });

  test("after a whole call there is no failure any more: the response ends with what there is", () => {
    const stream = writtenResponse([[start, ...call(0, "a", "{}"), text("Hel")], [broken]], exact);
    expect(stream).not.toMatch(/event: (error|response\.failed)/);
    const output = [{ name: "a", status: "completed" }, { content: [{ text: "Hel" }] }];
    expect(responseEvents(stream).at(-1)).toMatchObject({ type: "response.completed", response: { output } });
  });

  // The second call stayed added and was never done.
  test.each(["function", "custom"] as const)("half of a %s call after a whole one was never there", (kind) => {
    const half: GenerationEvent[] = [
      { type: "tool-call-start", choice: 0, index: 1, id: "call_1", name: "b", kind },
      { type: "tool-call-delta", choice: 0, index: 1, arguments: '{"x' },
    ];
    const cut: GenerationEvent = { type: "tool-call-end", choice: 0, index: 1, status: "failed" };
    for (const events of [half.slice(0, 1), half, [...half, cut]]) {
      const stream = writtenResponse([[start, ...call(0, "a", "{}")], events, [broken]], exact);
      expect(stream).not.toContain("call_1");
      const output = [{ name: "a", status: "completed" }];
      expect(responseEvents(stream).at(-1)).toMatchObject({ type: "response.completed", response: { output } });
      expect(typesOf(stream).filter((type) => type === "output_item.added")).toHaveLength(1);
    }
  });

  test("a call after a complete one is written when its input is complete, chunk by chunk, and is done when something follows", () => {
    const writer = responseWriter(exact);
    const [begun, first, second, end] = call(1, "b", '{"x":', "1}") as [
      GenerationEvent,
      GenerationEvent,
      GenerationEvent,
      GenerationEvent,
    ];
    writer.write([start, ...call(0, "a", "{}")]);
    expect(typesOf(writer.write([begun, first, second]))).toEqual(["function_call_arguments.done", "output_item.done"]);
    const delta = "function_call_arguments.delta";
    expect(typesOf(writer.write([end]))).toEqual(["output_item.added", delta, delta]);
    expect(typesOf(writer.write([broken]))).toEqual(["function_call_arguments.done", "output_item.done", "completed"]);
  });

  test("a call after a complete one that the limit cuts is written, incomplete", () => {
    const half = call(1, "b", '{"x').slice(0, 2);
    const stream = writtenResponse([[start, ...call(0, "a", "{}")], half, [finish("length"), done]], exact);
    expect(responseEvents(stream).at(-2)?.["item"]).toMatchObject({
      name: "b",
      arguments: '{"x',
      status: "incomplete",
    });
  });

  test("nothing is written for a client that has disconnected", () => {
    const writer = responseWriter(lean);
    expect(writer.write([{ type: "end", end: { kind: "client-gone" } }])).toBe("");
  });
});

describe("silence", () => {
  test("an answer that is opened early is not opened again", () => {
    const writer = responseWriter(exact);
    expect(typesOf(writer.open())).toEqual(["created", "in_progress"]);
    expect(writer.open()).toBe("");
    expect(typesOf(writer.write([start, text("Hi")]))).toEqual([
      "output_item.added",
      "content_part.added",
      "output_text.delta",
    ]);
  });

  // Comments reset no timer of Codex, which counts events.
  test.each([
    { profile: exact, type: "keepalive" },
    { profile: lean, type: "response.in_progress" },
  ])("profile $profile.name says that it is alive with an event that takes a number", ({ profile, type }) => {
    const writer = responseWriter(profile);
    writer.open();
    const [event] = responseEvents(writer.keepAlive());
    expect(event).toMatchObject({ type, sequence_number: 2 });
    expect(responseEvents(writer.write([start, text("Hi")]))[0]?.sequence_number).toBe(3);
  });
});

// An upstream's message without content became an item of its own, which clients show as an empty answer, and send back as content that
// servers refuse. The messages of the tests had content.
test.each([lean, exact])("a message without content is no item, streamed or whole, profile $name", (profile) => {
  const empty = (id: string, kind: "text" | "refusal"): GenerationEvent[] => [
    { type: "part-start", choice: 0, kind, id },
    { type: "text-delta", choice: 0, text: "" },
    { type: "part-end", choice: 0 },
  ];
  const events: GenerationEvent[] = [
    start,
    ...empty("msg_1", "text"),
    ...empty("msg_2", "refusal"),
    ...call(0, "f", "{}"),
    { type: "part-start", choice: 0, kind: "text", id: "msg_3" },
    text("Hi"),
    { type: "part-end", choice: 0 },
    ...empty("msg_4", "text"),
    finish("tool-calls"),
    usage,
    done,
  ];
  const typesIn = (response: unknown): string[] =>
    (response as { readonly output: readonly { readonly type: string }[] }).output.map(({ type }) => type);
  const streamed = responseEvents(writtenResponse([events], profile));
  expect(streamed.filter(({ type }) => type === "response.output_item.added")).toHaveLength(2);
  expect(typesIn(streamed.at(-1)?.["response"])).toEqual(["function_call", "message"]);
  const whole = writeResponse(accumulate(events), responseContext(profile), responseOptions());
  expect(typesIn(JSON.parse(whole))).toEqual(["function_call", "message"]);
});

// OpenAI sends an empty message after reasoning now and then (a recording shows it). Without it, the reasoning is refused in the next request.
test.each([lean, exact])("an empty message that is the whole answer is an item, profile $name", (profile) => {
  const events: GenerationEvent[] = [
    start,
    { type: "part-start", choice: 0, kind: "reasoning", id: "rs_1" },
    { type: "part-end", choice: 0, state: { kind: "encrypted", value: "c2VjcmV0" } },
    { type: "part-start", choice: 0, kind: "text", id: "msg_1" },
    { type: "text-delta", choice: 0, text: "" },
    { type: "part-end", choice: 0 },
    finish("stop"),
    usage,
    done,
  ];
  const expected = { type: "message", status: "completed", content: [{ type: "output_text", text: "" }] };
  const whole = writeResponse(accumulate(events), responseContext(profile), responseOptions());
  const streamed = responseEvents(writtenResponse([events], profile)).at(-1)?.["response"];
  for (const response of [streamed, JSON.parse(whole)])
    expect(response).toMatchObject({ output: [{ type: "reasoning" }, expected] });
});

// OpenAI sends one after an image that it has made, and clients that continue the conversation have it: it was left out.
test.each([lean, exact])(
  "an empty message that ends an answer of hosted items is an item, one beside calls or a text is not, profile $name",
  (profile) => {
    const image = { id: "ig_1", type: "image_generation_call", status: "completed", result: "aGk=" };
    const made: GenerationEvent = { type: "extra", choice: 0, place: "item", dialect: "responses", value: image };
    const empty: GenerationEvent[] = [
      { type: "part-start", choice: 0, kind: "text", id: "msg_1" },
      { type: "part-end", choice: 0 },
    ];
    const message: GenerationEvent = { type: "text-delta", choice: 0, text: "Hi" };
    const call: GenerationEvent[] = [
      { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: "{}" },
      { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
    ];
    for (const [parts, types] of [
      [
        [made, ...empty],
        ["image_generation_call", "message"],
      ],
      [[...empty, made], ["image_generation_call"]],
      [
        [message, made, ...empty],
        ["message", "image_generation_call"],
      ],
      [
        [made, ...empty, ...call],
        ["image_generation_call", "function_call"],
      ],
      [[...call, ...empty], ["function_call"]],
    ] as const) {
      const events = [start, ...parts, finish(types.at(-1) === "function_call" ? "tool-calls" : "stop"), usage, done];
      const whole = writeResponse(accumulate(events), responseContext(profile), responseOptions());
      const streamed = responseEvents(writtenResponse([events], profile)).at(-1)?.["response"];
      for (const response of [streamed, JSON.parse(whole)])
        expect((response as { output: { type: string }[] }).output.map(({ type }) => type)).toEqual(types);
    }
  },
);
