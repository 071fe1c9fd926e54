import { hasRecordings, type Recording, readRecordings } from "../../../test/support/recordings.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { obfuscate } from "../../wire/apis/chat/chat-envelope.ts";
import { answerId } from "../../wire/apis/ids.ts";
import { exact, lean } from "../../wire/apis/profile.ts";
import type { CapturedApi } from "../../wire/apis/ordered-capture.ts";
import { growthOf, maxGrowth } from "../../../test/support/growth.ts";
import { judgeAnswer, judgeCapture } from "./check-capture.ts";
import { knownPart } from "./known-part.ts";
import { repairCapture } from "./repair.ts";
import { ruleNamed } from "./rules/every-rule.ts";
import { runs } from "../../../test/support/runs.ts";

const options = { profile: exact, from: "auto", random: () => 0.5, now: 1_760_000_000 } as const;
/** Before OpenAI began to obfuscate, so that nothing in a stream is random. */
const created = 1_750_000_000;
const done = "data: [DONE]\n\n";
const sse = (chunk: object): string => `data: ${JSON.stringify(chunk)}\n\n`;

/** The same answer with what a careless proxy does to it: other line ends, members in another order. */
function degraded(stream: string): string {
  const lines = stream.split("\n").map((line) => {
    if (!line.startsWith("data: {")) return line;
    const members: object = JSON.parse(line.slice(6));
    return `data: ${JSON.stringify(Object.fromEntries(Object.entries(members).reverse()))}`;
  });
  return lines.join("\r\n");
}

/** What one chunk says of one choice of a completion. */
interface Piece {
  readonly index: number;
  readonly text: string;
  readonly finish: "stop" | "length" | null;
}

const completionChunk = (pieces: readonly Piece[]): string =>
  sse({
    id: answerId("cmpl-", created, () => 0.3),
    object: "text_completion",
    created,
    choices: pieces.map(({ index, text, finish }) => ({ text, index, logprobs: null, finish_reason: finish })),
    model: "gpt-3.5-turbo-instruct",
  });

const chatChunk = (index: number, delta: object, finish: string | null = null): string =>
  sse({
    id: answerId("chatcmpl-", created, () => 0.3),
    object: "chat.completion.chunk",
    created,
    model: "gpt-4o",
    service_tier: "default",
    system_fingerprint: "fp_0123456789",
    choices: [{ index, delta, logprobs: null, finish_reason: finish }],
  });

/** Chunks of up to three choices, alone or together; each choice ends once: with its last text, alone, or both. */
const completionStream = fc
  .array(fc.array(fc.record({ index: fc.nat(2), text: fc.string({ minLength: 1 }) }), { minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 12,
  })
  .chain((raw) => {
    const chunks = raw.map((pieces) => [...new Map(pieces.map((piece) => [piece.index, piece])).values()]);
    const indexes = [...new Set(chunks.flatMap((pieces) => pieces.map(({ index }) => index)))];
    const endings = fc.array(fc.constantFrom("on-text", "alone", "twice"), { minLength: 3, maxLength: 3 });
    return fc.record({
      chunks: fc.constant(chunks),
      indexes: fc.shuffledSubarray(indexes),
      endings,
      shared: fc.boolean(),
    });
  })
  .map(({ chunks, indexes, endings, shared }) => {
    const all = [...new Set(chunks.flatMap((pieces) => pieces.map(({ index }) => index)))];
    const order = [...indexes, ...all.filter((index) => !indexes.includes(index))];
    const lastOf = new Map(chunks.flatMap((pieces, at) => pieces.map(({ index }) => [index, at] as const)));
    const texts = chunks.map((pieces, at) =>
      pieces.map((piece): Piece => {
        const ends = lastOf.get(piece.index) === at && endings[piece.index] !== "alone";
        return { ...piece, finish: ends ? "length" : null };
      }),
    );
    const finishes = order
      .filter((index) => endings[index] !== "on-text")
      .map((index): Piece => ({ index, text: "", finish: endings[index] === "twice" ? "length" : "stop" }));
    const last = shared && finishes.length > 0 ? [finishes] : finishes.map((piece) => [piece]);
    return [...texts, ...last].map((pieces) => completionChunk(pieces)).join("") + done;
  });

describe("a stream of several choices", () => {
  // Text that waited for its choice's next chunk came out behind the other choices', each finish at the very end, and a chunk with the
  // finish of three choices became three chunks.
  test("of OpenAI's completions comes out as it went in, whatever stands together in a chunk", () => {
    fc.assert(
      fc.property(completionStream, (stream) => {
        const { body, repairs } = repairCapture(stream, options);
        expect(body).toBe(stream);
        expect(repairs).toEqual([]);
        expect(repairCapture(degraded(stream), options).body).toBe(stream);
      }),
      runs(100),
    );
  });

  // After any other repair, the finish reasons of all choices moved to the end.
  test("of OpenAI's chat keeps its order when it has to be repaired", () => {
    const texts = fc.array(fc.record({ index: fc.nat(2), text: fc.string({ minLength: 1 }) }), { maxLength: 20 });
    fc.assert(
      fc.property(texts, fc.shuffledSubarray([0, 1, 2], { minLength: 3 }), fc.boolean(), (pieces, order, early) => {
        const begin = order.map((index) => chatChunk(index, { role: "assistant", content: "", refusal: null }));
        const lastOf = new Map(pieces.map(({ index }, at) => [index, at]));
        const middle = pieces.flatMap(({ index, text }, at) => [
          chatChunk(index, { content: text }),
          ...(early && lastOf.get(index) === at ? [chatChunk(index, {}, "stop")] : []),
        ]);
        const rest = order
          .filter((index) => !early || !lastOf.has(index))
          .map((index) => chatChunk(index, {}, "length"));
        const stream = [...begin, ...middle, ...rest, done].join("");
        expect(repairCapture(stream, options)).toMatchObject({ body: stream, repairs: [] });
        expect(repairCapture(degraded(stream), options).body).toBe(stream);
      }),
      runs(60),
    );
  });

  // It was split, and the report did not say so.
  test("that another server puts into one chunk is told apart, and told so", () => {
    const stream =
      sse({ object: "text_completion", model: "m", choices: [choiceOf(0, "a"), choiceOf(1, "b")] }) +
      sse({ object: "text_completion", model: "m", choices: [choiceOf(1, "", "stop"), choiceOf(0, "", "stop")] }) +
      done;
    const { body, repairs } = repairCapture(stream, { ...options, profile: lean });
    const chunks = body.split("\n\n").filter((event) => event.startsWith("data: {"));
    expect(chunks.map((event) => (JSON.parse(event.slice(6)) as { choices: object[] }).choices)).toEqual([
      [choiceOf(0, "a")],
      [choiceOf(1, "b")],
      [choiceOf(1, "", "stop")],
      [choiceOf(0, "", "stop")],
    ]);
    expect(repairs).toContainEqual({ id: "shared-chunk", sentence: "A chunk carried several choices.", count: 2 });
  });
});

const choiceOf = (index: number, text: string, finish: string | null = null): object => ({
  text,
  index,
  logprobs: null,
  finish_reason: finish,
});

test("a finish reason that came too early follows the last text of its choice, as in an answer of serve", () => {
  const chunk = (index: number, delta: object, finish: string | null = null): string =>
    sse({ choices: [{ index, delta, finish_reason: finish }] });
  const stream = [
    chunk(0, { role: "assistant", content: "a" }),
    chunk(0, {}, "stop"),
    chunk(1, { role: "assistant", content: "x" }),
    chunk(0, { content: "b" }),
    chunk(1, { content: "y" }),
    chunk(1, {}, "stop"),
    done,
  ].join("");
  const { body } = repairCapture(stream, { ...options, profile: lean });
  const told = [...body.matchAll(/"index":(\d),"delta":(\{.*?\}),"logprobs":null,"finish_reason":(null|"stop")/g)];
  expect(told.map(([, index, delta, finish]) => `${index} ${delta} ${finish}`)).toEqual([
    '0 {"role":"assistant"} null',
    '0 {"content":"a"} null',
    '1 {"role":"assistant"} null',
    '1 {"content":"x"} null',
    '0 {"content":"b"} null',
    '1 {"content":"y"} null',
    '0 {} "stop"',
    '1 {} "stop"',
  ]);
});

describe.each([lean, exact])("audio and moderation of an answer that is repaired in profile $name", (profile) => {
  // Profile lean dropped them, and said nothing.
  const audio = [
    { id: "audio_1", transcript: "Hi" },
    { id: "audio_1", data: "AAAA" },
    { id: "audio_1", data: "AAAA" },
    { expires_at: created + 3600 },
  ];
  const moderation = { input: { flagged: false } };

  test("stay in a stream, also after the finish of their choice", () => {
    const chunk = (delta: object, rest: object = { finish_reason: null }): string =>
      sse({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created,
        model: "m",
        choices: [{ index: 0, delta, ...rest }],
      });
    const stream = [
      chunk({ role: "assistant", refusal: null }),
      ...audio.slice(0, 3).map((part) => chunk({ content: null, audio: part })),
      chunk({}, { finish_reason: "stop" }),
      chunk({ audio: audio[3] }, {}),
      sse({ id: "chatcmpl-1", object: "chat.completion.chunk", created, model: "m", choices: [], moderation }),
    ].join("");
    const { body, repairs } = repairCapture(stream, { ...options, profile });
    const events = [...body.matchAll(/^data: (\{.*\})$/gm)].map(([, json = ""]) => JSON.parse(json) as Chunk);
    expect(events.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta?.audio ?? []))).toEqual(audio);
    expect(events.flatMap((event) => event.moderation ?? [])).toEqual([moderation]);
    expect(repairs.map(({ id }) => id)).toEqual(["no-done"]);
    const errors = judgeCapture("audio", body).findings.filter(({ rule }) => ruleNamed(rule).severity === "error");
    expect(errors).toEqual([]);
  });

  test("stay in a body", () => {
    const whole = { id: "audio_1", data: "AAAA", transcript: "Hi", expires_at: created + 3600 };
    const choices = [{ message: { role: "assistant", content: null, audio: whole }, finish_reason: "end_turn" }];
    const answer = { id: "chatcmpl-1", object: "chat.completion", created, model: "m", choices, moderation };
    const { body } = repairCapture(JSON.stringify(answer), { ...options, profile });
    expect(JSON.parse(body)).toMatchObject({
      choices: [{ index: 0, message: { audio: whole }, finish_reason: "stop" }],
      moderation,
    });
  });
});

interface Chunk {
  readonly choices: readonly { readonly delta?: { readonly audio?: object } }[];
  readonly moderation?: object;
}

/** A short answer in the vendor's bytes. */
const own: Readonly<Record<"chat" | "responses" | "messages", string>> = {
  chat: exactOf(
    "chat",
    sse({ created, model: "gpt-4o", choices: [{ index: 0, delta: { role: "assistant", content: "Hi" } }] }),
    sse({ created, model: "gpt-4o", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
    done,
  ),
  responses: exactOf(
    "responses",
    sse({
      type: "response.created",
      response: { id: "resp_1", object: "response", created_at: created, model: "gpt-5.6" },
    }),
    sse({ type: "response.output_text.delta", delta: "Hi" }),
    sse({
      type: "response.completed",
      response: {
        id: "resp_1",
        object: "response",
        created_at: created,
        model: "gpt-5.6",
        usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
      },
    }),
  ),
  messages: exactOf(
    "messages",
    sse({ type: "message_start", message: { model: "claude-opus-5-5", usage: { input_tokens: 3, output_tokens: 1 } } }),
    sse({ type: "content_block_delta", delta: { type: "text_delta", text: "Hi" } }),
    sse({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }),
    sse({ type: "message_stop" }),
  ),
};

function exactOf(from: CapturedApi, ...events: readonly string[]): string {
  return repairCapture(events.join(""), { ...options, from }).body;
}

/** The same stream with sequence numbers in order, and obfuscation that fits. */
function fitting(stream: string): string {
  let next = 0;
  return stream
    .replaceAll(/"sequence_number":\d+/g, () => `"sequence_number":${next++}`)
    .replaceAll(/(?<=^data: )(.*),"obfuscation":"\w*"\}$/gm, (_, json: string) => obfuscate(json, () => 0.5));
}

describe("an answer that is right but for what is not known here", () => {
  // A member that a vendor had added made repair write the whole stream again: in today's form, and without the member.
  test.each([
    ["chat", "a member of a chunk", /("model":"gpt-4o")/g, '$1,"zone":"eu"'],
    ["chat", "a tier", /"service_tier":"default"/g, '"service_tier":"turbo"'],
    ["chat", "a finish reason", '"finish_reason":"stop"', '"finish_reason":"rested"'],
    ["chat", "a member of a delta", '"delta":{"content":"Hi"}', '"delta":{"content":"Hi","mood":"calm"}'],
    ["responses", "a member of a response", /("object":"response",.*?)("background")/g, '$1"attention":null,$2'],
    [
      "responses",
      "an event",
      /(?=event: response.completed)/,
      'event: response.mind.made\ndata: {"type":"response.mind.made","sequence_number":0}\n\n',
    ],
    ["responses", "a tier", /"service_tier":"default"/g, '"service_tier":"turbo"'],
    ["messages", "a member of a message", '"stop_sequence":null,', '"stop_sequence":null,"attention":null,'],
    ["messages", "a member of usage", /"output_tokens":/g, '"dream_tokens":3,"output_tokens":'],
    ["messages", "a stop reason", '"stop_reason":"end_turn"', '"stop_reason":"rested"'],
    ["messages", "an event", /(?=event: message_delta)/, 'event: message_note\ndata: {"type":"message_note"}\n\n'],
    [
      "messages",
      "a kind of block",
      /"content_block":\{"type":"text"|"type":"text_delta"/g,
      (found: string) => found.replace("text", "song"),
    ],
  ] as const)("%s, %s: stays as it is", (from, _, where, news) => {
    const stream = fitting(own[from].replace(where, news as string));
    expect(stream).not.toBe(own[from]);
    expect(repairCapture(stream, { ...options, from })).toEqual({ body: stream, repairs: [], end: { kind: "done" } });
    expect(repairCapture(own[from], { ...options, from }).body).toBe(own[from]);
  });

  test("responses, a kind of item: stays as it is", () => {
    const item = '{"id":"bc_1","type":"browse_call","status":"completed","action":{"type":"open"}}';
    const event = (type: string): string =>
      `event: ${type}\ndata: {"type":"${type}","item":${item},"output_index":1,"sequence_number":0}\n\n`;
    const [before = "", end = ""] = own.responses.split(/(?=event: response.completed)/);
    const items = event("response.output_item.added") + event("response.output_item.done");
    const stream = fitting(before + items + end.replace('],"parallel_tool_calls"', `,${item}],"parallel_tool_calls"`));
    expect(stream.split("browse_call").length).toBe(4);
    expect(repairCapture(stream, { ...options, from: "responses" })).toMatchObject({ body: stream, repairs: [] });
  });

  test.each([
    ["responses", "response.mind.made", /(?=event: response.completed)/],
    ["messages", "message_note", /(?=event: message_delta)/],
  ] as const)("%s: also in profile lean, an event", (from, type, where) => {
    const base = repairCapture(own[from], { ...options, from, profile: lean }).body;
    const stream = fitting(base.replace(where, `event: ${type}\ndata: {"type":"${type}","sequence_number":0}\n\n`));
    expect(repairCapture(stream, { ...options, from, profile: lean }).body).toBe(stream);
  });

  test("is repaired where something else is wrong", () => {
    const news = fitting(own.chat.replaceAll('"model":"gpt-4o"', '"model":"gpt-4o","zone":"eu"'));
    const { body, repairs } = repairCapture(news.replace(/data: .*"finish_reason":"stop".*\n\n/, ""), options);
    expect(repairs.map(({ id }) => id)).toEqual(["no-finish"]);
    expect(body).not.toContain("zone");
  });

  test("is read in time that grows with it", () => {
    const deep = (count: number): string => `${"[".repeat(count)}"\\""${"]".repeat(count)}`;
    const body = (count: number): string =>
      `{"choices":[${Array.from({ length: count }, () => '{"zone":{"a":"b"},"index":0}').join()}],"zone":${deep(count)}}`;
    expect(knownPart(body(2), "chat", true)).toBe('{"choices":[{"index":0},{"index":0}]}');
    const growth = growthOf((size) => {
      const text = body(size);
      return () => knownPart(text, "chat", true);
    });
    expect(growth).toBeLessThan(maxGrowth);
  });
});

function recorded(kind: string, since: string): readonly Recording[] {
  return readRecordings(kind).filter(
    ({ date, status, fidelity }) => (date ?? "") >= since && status === 200 && fidelity.startsWith("raw"),
  );
}

/** JSON as a program prints it that knows no order and no obfuscation. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).filter(([name]) => name !== "obfuscation");
  return Object.fromEntries(
    members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sorted(member)]),
  );
}

function unordered(body: string): string {
  if (body.trimStart().startsWith("{")) return JSON.stringify(sorted(JSON.parse(body)));
  const lines = body.split("\n");
  return lines
    .map((line) => (line.startsWith("data: {") ? `data: ${JSON.stringify(sorted(JSON.parse(line.slice(6))))}` : line))
    .join("\r\n");
}

/** The bytes without what is random: the characters of obfuscation, and Anthropic's padding. */
const still = (body: string): string =>
  body
    .replaceAll(/"obfuscation":"(\w*)"/g, (_, { length }: string) => `"obfuscation":${length}`)
    .replace(/ +\}$/gm, "}");

describe.skipIf(!hasRecordings("to repair"))("recordings", () => {
  // As it is, an answer of any month is left alone. The shares are of those that no recorder has edited. Calls of bodies lose the order of
  // their arguments for good.
  test.each([
    ["chat-stream", "2023", 0.99, "2025-08-05", 1],
    ["chat", "2023", 0.97, "2025-08-05", 0.98],
    ["completions-stream", "2024", 1, "2024", 1],
    ["completions", "2024", 1, "2024", 1],
    ["responses-stream", "2026", 0.98, "2026", 0.96],
    ["responses", "2026", 0.99, "2026", 0.99],
    ["messages-stream", "2025", 0.98, "2025-10-30", 0.99],
    ["messages", "2025", 0.98, "2025-10-30", 0.9],
  ] as const)(
    "%s: unchanged since %s (%d), and as before since %s though printed again (%d)",
    (kind, since, unchanged, printedSince, restored) => {
      const from = kind.replace("-stream", "") as CapturedApi;
      const repaired = ({ request }: Recording, body: string): string =>
        still(repairCapture(body, { ...options, from, request }).body);
      const all = recorded(kind, since);
      const same = all.filter((recording) => repaired(recording, recording.body) === still(recording.body));
      expect(same.length / all.length).toBeGreaterThanOrEqual(unchanged);
      const newer = all.filter(({ date }) => (date ?? "") >= printedSince);
      const again = newer.filter(
        (recording) => repaired(recording, unordered(recording.body)) === still(recording.body),
      );
      expect(again.length / newer.length).toBeGreaterThanOrEqual(restored);
      expect(newer.length).toBeGreaterThan(10);
    },
  );

  // Answers of September 2026 were printed in the order of before October 2025, because their first member was not the model.
  test("of Messages since September 2026 keep their form", () => {
    const all = [...recorded("messages-stream", "2026-09"), ...recorded("messages", "2026-09")];
    for (const { body, name } of all) {
      expect(still(repairCapture(unordered(body), { ...options, from: "messages" }).body), name).toBe(still(body));
    }
  });
});

// Each of them became an error body, with exit code 0.
test.each([
  { object: "list", data: [{ id: "m", object: "model", created, owned_by: "openai" }] },
  { id: "m", object: "model", created, owned_by: "openai" },
  { data: [{ type: "model", id: "claude" }], has_more: false, first_id: null, last_id: null },
  { type: "model", id: "claude", display_name: "Claude" },
  { object: "list", data: [{ object: "embedding", index: 0, embedding: [0.5] }], model: "m", usage: {} },
  { input_tokens: 5 },
  { object: "response.input_tokens", input_tokens: 5 },
  { object: "response.compaction", id: "resp_1", output: [], usage: {} },
  { id: "msgbatch_1", type: "message_batch", processing_status: "ended" },
  { id: "batch_1", object: "batch", errors: null },
  { custom_id: "1", result: { type: "succeeded", message: {} } },
  { id: "resp_1", object: "response", background: true, status: "in_progress", error: null, output: [] },
])("the body of an endpoint that generates nothing stays: %j", (answer) => {
  for (const capture of [JSON.stringify(answer), JSON.stringify(answer, null, 2)]) {
    for (const profile of [lean, exact])
      expect(repairCapture(capture, { ...options, profile })).toEqual({
        body: capture,
        repairs: [],
        end: { kind: "done" },
      });
  }
});

// A list of batches was judged as one of models, and a response that is still generated as one that ended wrongly.
test.each([
  {
    data: [{ id: "msgbatch_1", type: "message_batch" }],
    has_more: false,
    first_id: "msgbatch_1",
    last_id: "msgbatch_1",
  },
  { id: "batch_1", object: "batch", errors: null },
  { object: "list", data: [{ object: "batch", id: "batch_1" }] },
])("a file with the body of an endpoint that has no rules is not accused: %j", (answer) => {
  const { findings, exchange } = judgeAnswer("file", JSON.stringify(answer), {});
  expect(exchange.endpoint).toBe("other");
  expect(findings.filter(({ rule }) => ruleNamed(rule).severity === "error")).toEqual([]);
});

test("a file with a response that is still generated in the background has not ended wrongly", () => {
  const running = { id: "resp_1", object: "response", background: true, status: "in_progress", output: [] };
  const rules = ({ findings }: ReturnType<typeof judgeCapture>): string[] => findings.map(({ rule }) => rule);
  expect(rules(judgeCapture("file", JSON.stringify(running)))).not.toContain("responses/end");
  expect(rules(judgeCapture("file", JSON.stringify({ ...running, background: false })))).toContain("responses/end");
});

test.each([
  [{ id: "chatcmpl-1", object: "chat.completion", created, model: "m" }],
  [{ object: "list", data: [], choices: [{ index: 0, message: { role: "assistant", content: "Hi" } }] }],
  [{ error: { message: "No." } }],
])("an answer that is damaged is no such body: %j", (answer) => {
  const capture = JSON.stringify(answer);
  expect(repairCapture(capture, { ...options, profile: lean }).body).not.toBe(capture);
});

// A member that is named as a method was called to make a text of `type`, and the command ended with a TypeError.
test.each(["type", "object"])("a body whose %s has a member toString is repaired or left as it is", (name) => {
  const hostile = JSON.stringify({ [name]: { toString: 1, valueOf: 1 }, id: "x" });
  expect(() => repairCapture(hostile, options)).not.toThrow();
});
