import { hasRecordings, readRecordings } from "../../../../test/support/recordings.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { legalBatches } from "../../../../test/support/legal-events.ts";
import { responseEvents, writtenResponse } from "../../../../test/support/response-stream.ts";
import { orderViolation } from "../../../../test/upstream/legal-order.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GeneratedPart, Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { exact, lean } from "../profile.ts";
import { ResponseReader } from "./read.ts";

type Event = Readonly<Record<string, unknown>>;

function sse(events: readonly Event[], names = true): string {
  const name = ({ type }: Event): string => (names ? `event: ${String(type)}\n` : "");
  return events.map((event) => `${name(event)}data: ${JSON.stringify(event)}\n\n`).join("");
}

function read(stream: string, chunks = 1): { generation: Generation; events: GenerationEvent[]; repairs: string[] } {
  const reader = new ResponseReader({ newCallId: () => "call_new" });
  const size = Math.ceil(stream.length / chunks);
  const events: GenerationEvent[] = [];
  for (let at = 0; at < stream.length; at += size) events.push(...reader.push(stream.slice(at, at + size)));
  events.push(...reader.end());
  return { generation: accumulate(events), events, repairs: reader.repairs.list().map(({ id }) => id) };
}

const partsOf = ({ choices }: Generation): readonly Partial<GeneratedPart>[] => choices[0]?.parts ?? [];

const usage = { input_tokens: 5, output_tokens: 2, total_tokens: 7 };
const response = { id: "resp_1", object: "response", created_at: 1_800_000_000, model: "m", output: [] };
const completed = { type: "response.completed", response: { ...response, status: "completed", usage } };
const delta = (text: string, more: Event = {}): Event => ({ type: "response.output_text.delta", delta: text, ...more });

describe("what other servers leave out", () => {
  test("deltas alone, and [DONE] in place of the end", () => {
    const { generation, repairs } = read(`${sse([delta("Hel"), delta("lo")], false)}data: [DONE]\n\n`);
    expect(generation).toMatchObject({
      end: { kind: "done" },
      choices: [{ text: "Hello", finish: { reason: "stop" } }],
    });
    expect(repairs).toEqual([
      "no-event-name",
      "no-created",
      "no-completed",
      "sequence",
      "item-index",
      "item-added",
      "item-done",
    ]);
  });

  test("a text that only the whole part, item or response has", () => {
    const item = { type: "message", id: "msg_1", role: "assistant", content: [{ type: "output_text", text: "Hello" }] };
    const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
    const streams = [
      [{ type: "response.output_text.done", text: "Hello", ...place }, completed],
      [{ type: "response.content_part.done", part: { type: "output_text", text: "Hello" }, ...place }, completed],
      [{ type: "response.output_item.done", item, output_index: 0 }, completed],
      [{ ...completed, response: { ...completed.response, output: [item] } }],
      [delta("Hel", place), { type: "response.output_text.done", text: "Hello", ...place }, completed],
    ];
    for (const stream of streams)
      expect(partsOf(read(sse(stream)).generation)).toMatchObject([{ type: "text", text: "Hello" }]);
  });

  test("calls whose events are interleaved come one after the other", () => {
    const added = (index: number): Event => ({
      type: "response.output_item.added",
      output_index: index,
      item: { type: "function_call", id: `fc_${index}`, call_id: `call_${index}`, name: `f${index}`, arguments: "" },
    });
    const chunk = (index: number, text: string): Event => ({
      type: "response.function_call_arguments.delta",
      item_id: `fc_${index}`,
      output_index: index,
      delta: text,
    });
    const { generation, events, repairs } = read(
      sse([added(0), added(1), chunk(0, '{"a":'), chunk(1, "{"), chunk(0, "1}"), chunk(1, "}"), completed]),
    );
    expect(orderViolation(events)).toBeNull();
    expect(generation.choices[0]?.toolCalls).toMatchObject([
      { id: "call_0", name: "f0", arguments: '{"a":1}', status: "succeeded", itemId: "fc_0" },
      { id: "call_1", name: "f1", arguments: "{}", status: "succeeded" },
    ]);
    expect(generation.choices[0]?.finish?.reason).toBe("tool-calls");
    expect(repairs).toContain("item-order");
  });

  // LiteLLM 1.108.7; the text was read again from the events that end it.
  test("a message that ends after the call that follows it is read once", () => {
    const message = { type: "message", id: "msg_0", role: "assistant" };
    const place = { item_id: "msg_0", output_index: 0, content_index: 0 };
    const part = { type: "output_text", text: "Let me look.", annotations: [] };
    const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "{}" };
    const { generation } = read(
      sse([
        { type: "response.output_item.added", output_index: 0, item: { ...message, content: [] } },
        { type: "response.content_part.added", ...place, part: { ...part, text: "" } },
        { type: "response.output_text.delta", ...place, delta: "Let me look." },
        { type: "response.output_item.added", output_index: 1, item: { ...call, arguments: "" } },
        { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 1, delta: "{}" },
        { type: "response.output_item.done", output_index: 1, item: call },
        { type: "response.output_text.done", ...place, text: "Let me look." },
        { type: "response.content_part.done", ...place, part },
        { type: "response.output_item.done", output_index: 0, item: { ...message, content: [part] } },
        completed,
      ]),
    );
    const [choice] = generation.choices;
    expect([choice?.text, choice?.toolCalls.length]).toEqual(["Let me look.", 1]);
  });

  test("a call whose name comes with its end, and one without an id or arguments", () => {
    const chunk = { type: "response.function_call_arguments.delta", item_id: "fc_0", output_index: 0, delta: "{}" };
    const done = (index: number, item: Event): Event => ({
      type: "response.output_item.done",
      output_index: index,
      item: { type: "function_call", ...item },
    });
    const { generation, repairs } = read(
      sse([
        chunk,
        done(0, { id: "fc_0", call_id: "call_0", name: "f", arguments: "{}" }),
        done(1, { name: "g" }),
        completed,
      ]),
    );
    expect(generation.choices[0]?.toolCalls).toMatchObject([
      { id: "call_0", name: "f", arguments: "{}" },
      { id: "call_new", name: "g", arguments: "{}" },
    ]);
    expect(repairs).toEqual(expect.arrayContaining(["call-id", "no-arguments"]));
  });

  test("reasoning under the name that the Open Responses specification has for it", () => {
    const stream = [
      { type: "response.reasoning.delta", delta: "Hm" },
      { type: "response.reasoning_summary_text.delta", delta: "Short", summary_index: 0 },
      delta("Hi"),
      completed,
    ];
    expect(partsOf(read(sse(stream)).generation)).toMatchObject([
      { type: "reasoning", text: "Hm", summary: ["Short"] },
      { type: "text", text: "Hi" },
    ]);
  });

  test("a whole response where a stream was due", () => {
    const body = { ...completed.response, output: [{ type: "message", content: "Hello" }] };
    const { generation, repairs } = read(JSON.stringify(body));
    expect(generation.choices[0]?.text).toBe("Hello");
    expect(repairs).toContain("json-body");
  });
});

describe("what only Responses has", () => {
  test("seals, phases, annotations and items of hosted tools are kept", () => {
    const annotation = { type: "url_citation", url: "https://a.example/", title: "A", start_index: 0, end_index: 2 };
    const items = [
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAAA" },
      { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
      {
        type: "message",
        id: "msg_1",
        phase: "final_answer",
        content: [{ type: "output_text", text: "Hi", annotations: [annotation] }],
      },
      { type: "function_call", id: "fc_1", call_id: "call_1", namespace: "files", name: "read", arguments: "{}" },
    ];
    const stream = items.flatMap((item, index) => [
      { type: "response.output_item.added", item: { ...item, content: [], arguments: "" }, output_index: index },
      { type: "response.output_item.done", item, output_index: index },
    ]);
    expect(partsOf(read(sse([...stream, completed])).generation)).toMatchObject([
      { type: "reasoning", id: "rs_1", state: { kind: "encrypted", value: "gAAAA" } },
      { type: "hosted-call", id: "ws_1", kind: "web_search", arguments: '{"query":"q"}' },
      { type: "hosted-result", id: "ws_1", native: { dialect: "responses", value: items[1] } },
      {
        type: "text",
        id: "msg_1",
        phase: "final_answer",
        text: "Hi",
        annotations: [{ url: "https://a.example/", native: { dialect: "responses", value: annotation } }],
      },
      { type: "tool-call", id: "call_1", name: "files__read", namespace: "files", itemId: "fc_1" },
    ]);
  });

  // It was passed on as a whole call, and an agent would have run half of a patch.
  test("a custom call that the limit has cut is no whole call", () => {
    const item = { type: "custom_tool_call", id: "ctc_1", call_id: "call_1", name: "patch", input: "*** Beg" };
    const end = { ...response, status: "incomplete", incomplete_details: { reason: "max_output_tokens" }, usage };
    const done = (status: string): Event => ({
      type: "response.output_item.done",
      output_index: 0,
      item: { ...item, status },
    });
    const readWith = (status: string): readonly Partial<GeneratedPart>[] =>
      partsOf(read(sse([done(status), { type: "response.incomplete", response: end }])).generation);
    expect(readWith("incomplete")).toMatchObject([{ arguments: "*** Beg", status: "failed" }]);
    expect(readWith("completed")).toMatchObject([{ arguments: "*** Beg", status: "succeeded" }]);
  });

  test("an incomplete response says why", () => {
    const incomplete = (reason: string): Event => ({
      type: "response.incomplete",
      response: { ...response, status: "incomplete", incomplete_details: { reason }, usage },
    });
    const finish = (reason: string): unknown =>
      read(sse([delta("Hi"), incomplete(reason)])).generation.choices[0]?.finish;
    expect(finish("max_output_tokens")).toEqual({ reason: "length", limit: "max-tokens" });
    expect(finish("content_filter")).toEqual({ reason: "content-filter" });
  });
});

describe("answers without an end", () => {
  test("a stream that is cut is truncated", () => {
    const { generation } = read(sse([delta("Hel")]));
    expect(generation.end).toMatchObject({ kind: "truncated", failure: { status: 502 } });
  });

  test.each([
    { type: "error", error: { type: "server_error", code: "rate_limit_exceeded", message: "Slow down." } },
    { type: "error", code: "rate_limit_exceeded", message: "Slow down.", param: null },
    {
      type: "response.failed",
      response: { ...response, error: { code: "rate_limit_exceeded", message: "Slow down." } },
    },
  ])("%j is the source's failure", (event) => {
    const { generation } = read(sse([delta("Hel"), event]));
    expect(generation.end).toMatchObject({
      kind: "upstream-error",
      failure: { message: "Slow down.", code: "rate_limit_exceeded" },
    });
  });

  test("a page in place of a stream is reported in its words", () => {
    const { generation } = read("<html><title>502 Bad Gateway</title></html>");
    expect(generation.end).toMatchObject({ kind: "upstream-error", failure: { message: "502 Bad Gateway" } });
  });
});

describe("any stream", () => {
  test("of our own writer is read as the events it was written from, wherever it is cut into chunks", () => {
    fc.assert(
      fc.property(
        legalBatches(),
        fc.constantFrom(lean, exact),
        fc.integer({ min: 1, max: 40 }),
        (batches, profile, chunks) => {
          const all = batches.flat();
          const { generation, events, repairs } = read(writtenResponse([all], profile), chunks);
          expect(orderViolation(events)).toBeNull();
          expect(repairs.filter((id) => id !== "usage-value" && id !== "no-arguments")).toEqual([]);
          expect(generation.end).toEqual({ kind: "done" });
          const said = (from: Generation): unknown =>
            from.choices.slice(0, 1).map(({ text, refusal, reasoning, toolCalls, finish }) => ({
              spoken: [text ?? "", refusal ?? "", reasoning ?? ""],
              calls: toolCalls.map(({ id, name, kind, arguments: input }) => [id, name, kind, input.trim() || "{}"]),
              cut: finish?.reason === "length",
            }));
          expect(said(generation)).toEqual(said(accumulate(all)));
        },
      ),
      { numRuns: 200 },
    );
  });

  test("of any content is read in legal order, with one end", () => {
    const word = fc.constantFrom(
      "message",
      "reasoning",
      "function_call",
      "custom_tool_call",
      "web_search_call",
      "output_text",
      "x",
    );
    const value = fc.oneof(
      fc.constantFrom("", "{}", "Hi", null, 0, 1, -1),
      fc.array(fc.constant({ type: "output_text", text: "a" })),
    );
    const item = fc.dictionary(
      fc.constantFrom("id", "content", "summary", "name", "call_id", "arguments", "input", "text", "refusal"),
      value,
    );
    const whole = fc.tuple(item, word).map(([members, type]) => ({ ...members, type }));
    const event = fc
      .tuple(
        fc.constantFrom(
          "created",
          "in_progress",
          "output_item.added",
          "output_item.done",
          "content_part.added",
          "content_part.done",
          "output_text.delta",
          "output_text.done",
          "refusal.delta",
          "reasoning_text.delta",
          "reasoning_summary_text.delta",
          "function_call_arguments.delta",
          "function_call_arguments.done",
          "custom_tool_call_input.delta",
          "completed",
        ),
        fc.record(
          {
            item: whole,
            part: whole,
            delta: value,
            text: value,
            output_index: value,
            content_index: value,
            item_id: value,
            response: item,
          },
          { requiredKeys: [] },
        ),
      )
      .map(([name, members]): Event => ({ ...members, type: `response.${name}` }));
    fc.assert(
      fc.property(fc.array(event, { maxLength: 12 }), (stream) => {
        const { events } = read(sse(stream));
        expect(orderViolation(events)).toBeNull();
        expect(events.filter(({ type }) => type === "end")).toHaveLength(1);
      }),
      { numRuns: 1000 },
    );
  });
});

// access_programs, input_transformations and the reason "steered" of an upstream were lost, or became max_output_tokens.
describe("members of an upstream's response that only it knows are passed on", () => {
  const options = { comparison_response_id: "resp_0", mode: "explicit", ttl: "12h" };
  const known = { access_programs: { cyber: "daybreak_blue" }, prompt_cache_options: options };
  const transformations = [{ id: "rs_1", type: "reasoning", action: "removed", reason: "prefix_mismatch" }];
  const moderation = { input: { model: "omni-moderation-latest", flagged: false, categories: { violence: false } } };
  const details = { cache_write_tokens: 9, cache_write_tokens_details: { ttl_12h_tokens: 9, ttl_30m_tokens: 0 } };
  const ended = {
    ...response,
    ...known,
    status: "incomplete",
    incomplete_details: { reason: "steered" },
    input_transformations: transformations,
    image: { context_compression: "enabled" },
    // A request with `moderation` got an answer without it.
    moderation,
    usage: { ...usage, input_tokens_details: { ...details, cached_tokens: 1 } },
  };
  const stream = sse([
    { type: "response.created", response: { ...response, ...known } },
    delta("Hi"),
    { type: "response.incomplete", response: ended },
  ]);
  test.each([exact, lean])("profile $name", (profile) => {
    const { events, repairs } = read(stream);
    expect(repairs).not.toContain("usage-value");
    const written = writtenResponse([events], profile).matchAll(/^data: (\{.*)$/gm);
    const shown = [...written].map(([, json = ""]) => JSON.parse(json) as { response?: object });
    const isExact = profile === exact;
    const programs = isExact ? known.access_programs : undefined;
    expect(shown[0]?.response).toMatchObject({ prompt_cache_options: options, incomplete_details: null });
    expect({ access_programs: undefined, ...shown[0]?.response }.access_programs).toEqual(programs);
    const last = shown.findLast((event) => "response" in event)?.response;
    expect(last).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "steered" },
      input_transformations: transformations,
      moderation,
      usage: { input_tokens_details: details },
      ...(isExact && { image: { context_compression: "enabled" } }),
    });
    expect("image" in (last ?? {})).toBe(isExact);
    expect(Object.keys(last ?? {}).join()).toContain("prompt_cache_key,prompt_cache_options,prompt_cache_retention");
  });
  test("what does not match the specification is not", () => {
    const odd = { ...ended, access_programs: "all", input_transformations: {}, incomplete_details: { reason: 7 } };
    const { events } = read(
      sse([{ type: "response.created", response }, delta("Hi"), { type: "response.incomplete", response: odd }]),
    );
    const text = writtenResponse([events], exact);
    expect(text).not.toContain("input_transformations");
    expect(text).toContain('"access_programs":null');
    expect(text).toContain('"incomplete_details":{"reason":"max_output_tokens"}');
  });
});

test.skipIf(!hasRecordings("of LM Studio to read"))(
  "LM Studio's streams are read, arguments that only come whole included",
  () => {
    const streams = readRecordings("responses-foreign").filter(({ name }) => name.includes("lmstudio"));
    expect(streams.length).toBeGreaterThan(0);
    for (const { body } of streams) {
      const { generation, events, repairs } = read(body);
      expect(orderViolation(events)).toBeNull();
      expect(generation.choices[0]?.toolCalls).toHaveLength(1);
      expect(generation.choices[0]?.reasoning).not.toBeNull();
      expect(repairs.filter((id) => id !== "whole-text")).toEqual([]);
    }
  },
);

test("50,000 items of a source that numbers them as it likes are read in linear time", () => {
  // All items were searched for the latest open one of a kind, and the arguments of a call that is not the last item were parsed again
  // with each event.
  const count = 50_000;
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "f", arguments: "" };
  const place = { item_id: "fc_1", output_index: 0 };
  const events = [
    { type: "response.output_item.added", output_index: 0, item: call },
    { type: "response.function_call_arguments.delta", delta: '{"a":"', ...place },
    ...Array.from({ length: count }, (_, at) => [
      delta("a", { item_id: `msg_${at}`, output_index: 4_294_967_294 - at }),
      { type: "response.output_item.done", item: { type: "message", id: `msg_${at}` } },
      { type: "response.function_call_arguments.delta", delta: "aaaaaaaaaaaaaaaa", ...place },
    ]).flat(),
    { type: "response.function_call_arguments.delta", delta: '"}', ...place },
    completed,
  ];
  const generation = accumulate(new ResponseReader({ newCallId: () => "call_new" }).push(sse(events)));
  expect(generation.end).toEqual({ kind: "done" });
  expect(partsOf(generation)).toHaveLength(count + 1);
});

// Two of the three lists in a recording of OpenAI (2026-06) come with the whole response only: no text came before that.
test("a list of functions that has no end of its own holds nothing back, however many there are", () => {
  const list = (at: number, tools: readonly object[] = []): Event => ({
    id: `mcpl_${at}`,
    type: "mcp_list_tools",
    server_label: `server ${at}`,
    tools,
  });
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [] };
  const lists = Array.from({ length: 20_000 }, (_, at) => list(at));
  const opening = [
    { type: "response.created", response },
    ...lists.map((item, at) => ({ type: "response.output_item.added", item, output_index: at })),
    { type: "response.output_item.done", item: list(2, [{ name: "two" }]), output_index: 2 },
    { type: "response.output_item.added", item, output_index: lists.length },
    delta("Hello", { item_id: "msg_1", output_index: lists.length }),
  ];
  const reader = new ResponseReader({ newCallId: () => "call_new" });
  const first = reader.push(sse(opening));
  expect(first.filter(({ type }) => type === "text-delta")).toEqual([{ type: "text-delta", choice: 0, text: "Hello" }]);
  const output = [...lists.keys()].map((at) => list(at, [{ name: `of ${at}` }]));
  const rest = reader.push(sse([{ ...completed, response: { ...completed.response, output: [...output, item] } }]));
  const events = [...first, ...rest];
  expect(orderViolation(events)).toBeNull();
  const written = responseEvents(writtenResponse([events], lean)).at(-1)?.["response"] as typeof response;
  const whole = partsOf(accumulate(events));
  for (const items of [written.output as readonly Event[], whole]) {
    expect(items.length).toBe(lists.length + 1);
    for (const at of [0, 1, 2, 19_999]) {
      const name = at === 2 ? "two" : `of ${at}`;
      expect(JSON.stringify(items[at])).toContain(`"name":"${name}"`);
    }
  }
});
