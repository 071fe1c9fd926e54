import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type * as z from "zod";
import { legalBatches } from "../../../../test/support/legal-events.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { FailureError } from "../../core/failure.ts";
import type { ModelInfo } from "../../core/engine.ts";
import type { GenerationRequest } from "../../core/request.ts";
import { serialize } from "../members.ts";
import { exact, lean, type Profile } from "../profile.ts";
import { goString, goTime, parseGoDuration } from "./go-values.ts";
import {
  capabilitiesOf,
  checkCapabilities,
  ollamaName,
  readOllamaPull,
  writeOllamaShow,
  writeOllamaTags,
} from "./models.ts";
import { readOllamaEmbed, writeOllamaEmbed } from "./embed.ts";
import {
  type OllamaAnswer,
  readContext,
  readOllamaChat,
  readOllamaGenerate,
  type ReadOllamaRequest,
  writeContext,
} from "./request.ts";
import { ollamaChatResponse, ollamaGenerateResponse, ollamaModelList, ollamaShownModel } from "./schema.ts";
import { type OllamaContext, OllamaStreamWriter, writeOllamaResponse } from "./write.ts";

function context(answer: OllamaAnswer): OllamaContext {
  let now = 1_800_000_000_000;
  return { answer, model: "tiny:1b", beganMs: now, nowMs: () => (now += 0.25) };
}

function streamed(batches: readonly (readonly GenerationEvent[])[], answer: OllamaAnswer): Record<string, unknown>[] {
  const writer = new OllamaStreamWriter(context(answer));
  return linesOf(batches.map((batch) => writer.write(batch)).join(""));
}

function linesOf(text: string): Record<string, unknown>[] {
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

const chat: OllamaAnswer = { endpoint: "chat" };
const text = (text: string): GenerationEvent => ({ type: "text-delta", choice: 0, text });
const finish: GenerationEvent = { type: "finish", choice: 0, reason: "stop" };
const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const usage: GenerationEvent = {
  type: "usage",
  usage: { promptTokens: 12, completionTokens: 3 },
  timings: { queuedMs: 0, promptMs: 0.5, generationMs: 0.25, promptTokensPerSecond: 1, tokensPerSecond: 1 },
};

test("a chat stream, to the byte", () => {
  const writer = new OllamaStreamWriter(context(chat));
  const call: GenerationEvent[] = [
    { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
    { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"a": [1,\n "é"]}' },
    { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  ];
  const written = writer.write([
    { type: "start", choice: 0 },
    { type: "reasoning-delta", choice: 0, text: "So" },
    text('<a> & "b"'),
    ...call,
    finish,
    usage,
    done,
  ]);
  const head = '{"model":"tiny:1b","created_at":"2027-01-15T08:00:00.';
  expect(written).toBe(
    `${head}0005Z","message":{"role":"assistant","content":"","thinking":"So"},"done":false}\n` +
      `${head}00075Z","message":{"role":"assistant","content":"\\u003ca\\u003e \\u0026 \\"b\\""},"done":false}\n` +
      `${head}001Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"f","arguments":{"a":[1,"é"]}}}]},"done":false}\n` +
      `${head}0015Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1250000,"load_duration":500000,"prompt_eval_count":12,"prompt_eval_duration":500000,"eval_count":3,"eval_duration":250000}\n`,
  );
});

test("counts and durations that are not known are absent, as zeros are in Go", () => {
  const [only] = streamed([[{ type: "start", choice: 0 }, finish, done]], chat);
  expect(Object.keys(only ?? {})).toEqual(["model", "created_at", "message", "done", "done_reason", "total_duration"]);
});

test("a failure after the first line is a line with the error; nothing follows", () => {
  const writer = new OllamaStreamWriter(context(chat));
  writer.write([text("Hi")]);
  const failure = { kind: "bad-answer", message: "It <broke>.", status: 502 } as const;
  expect(writer.write([{ type: "end", end: { kind: "upstream-error", failure } }])).toBe(
    '{"error":"It \\u003cbroke\\u003e."}\n',
  );
  expect(writer.write([text("more"), done]) + writer.keepAlive()).toBe("");
});

test("a silent stream gets lines without content, since clients parse every line", () => {
  const [line] = linesOf(new OllamaStreamWriter(context(chat)).keepAlive());
  expect(line).toMatchObject({ message: { role: "assistant", content: "" }, done: false });
});

describe.each([
  ["chat", ollamaChatResponse],
  ["generate", ollamaGenerateResponse],
] as const)("for every order of events, %s", (endpoint, schema: z.ZodObject) => {
  const answer: OllamaAnswer = {
    endpoint,
    topLogprobs: 2,
    ...(endpoint === "generate" && { conversation: [{ role: "user", content: "Hi" }] }),
  };
  const ofLine = (line: Record<string, unknown>): { content?: string; thinking?: string; tool_calls?: unknown[] } =>
    endpoint === "chat" ? (line["message"] as object) : { ...line, content: line["response"] as string };

  test("every line matches the schema, its members are in order, and only the last one is done", () => {
    fc.assert(
      fc.property(legalBatches({ logprobs: true }), (batches) => {
        const writer = new OllamaStreamWriter(context(answer));
        const body = batches.map((batch) => writer.write(batch)).join("");
        const lines = linesOf(body);
        for (const [at, line] of lines.entries()) {
          expect(schema.strict().safeParse(line).error).toBeUndefined();
          expect(line["done"]).toBe(at === lines.length - 1);
          expect(JSON.stringify(line)).toBe(serialize(schema, line));
        }
        expect(body).not.toMatch(/[<>&\u2028\u2029]/);
      }),
    );
  });

  test("the lines together are the whole answer", () => {
    fc.assert(
      fc.property(legalBatches(), (batches) => {
        const lines = streamed(batches, answer).map(ofLine);
        const generation = accumulate(batches.flat());
        const whole = JSON.parse(writeOllamaResponse(generation, context(answer))) as Record<string, unknown>;
        const { content, thinking, tool_calls: calls } = ofLine(whole);
        const [choice] = generation.choices;
        expect(schema.strict().safeParse(whole).error).toBeUndefined();
        // Text and refusals may alternate; the whole answer has the text first.
        if (choice?.refusal === null || choice?.text === null)
          expect(lines.map(({ content = "" }) => content).join("")).toBe(content);
        expect(lines.map(({ thinking = "" }) => thinking).join("")).toBe(thinking ?? "");
        expect(lines.flatMap(({ tool_calls: calls = [] }) => calls)).toEqual(calls ?? []);
        expect(whole["done"]).toBe(true);
      }),
    );
  });
});

describe("Go's values", () => {
  test("a string is escaped as by json.Marshal", () => {
    expect(goString('a<b>&\u2028\u2029\n"é')).toBe('"a\\u003cb\\u003e\\u0026\\u2028\\u2029\\n\\"é"');
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => void expect(JSON.parse(goString(text))).toBe(text)));
  });

  test.each([
    [1_800_000_000_000, "2027-01-15T08:00:00Z"],
    [1_800_000_000_120, "2027-01-15T08:00:00.12Z"],
    [1_800_000_000_000.5, "2027-01-15T08:00:00.0005Z"],
  ])("%d is written as %s", (ms, written) => expect(goTime(ms)).toBe(written));

  test.each([
    ["5m", 300_000],
    ["1h30m", 5_400_000],
    ["-1s", -1000],
    ["300ms", 300],
    ["1.5h", 5_400_000],
    ["0", 0],
  ])("%s is %d ms", (duration, ms) => expect(parseGoDuration(duration)).toBe(ms));

  test.each([
    ["5", 'time: missing unit in duration "5"'],
    ["5x", 'time: unknown unit "x" in duration "5x"'],
    ["five", 'time: invalid duration "five"'],
    ["1constructor", 'time: unknown unit "constructor" in duration "1constructor"'],
  ])("%s is refused in Go's words", (duration, words) => expect(() => parseGoDuration(duration)).toThrow(words));
});

function chatRequest(body: object, profile: Profile = lean): ReadOllamaRequest {
  return readOllamaChat({ model: "m", messages: [{ role: "user", content: "Hi" }], ...body }, "req_1", { profile });
}

function refusal(read: () => unknown): { status: number; message: string } {
  try {
    read();
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new Error("It was not refused.");
}

describe("chat requests", () => {
  test("a stream is the default", () => {
    expect(chatRequest({}).request).toMatchObject({
      stream: true,
      wantsUsage: true,
      limits: { overflow: "drop-oldest" },
    });
    expect(chatRequest({ stream: false, truncate: false }).request).toMatchObject({ stream: false, limits: {} });
    expect(chatRequest({ truncate: false }).request.limits.overflow).toBeUndefined();
  });

  test("options become sampling and limits; those of the runner and unknown ones are ignored with a warning", () => {
    const options = {
      temperature: 0.5,
      top_k: 40.9,
      top_p: 0.9,
      min_p: 0.05,
      repeat_penalty: 1.1,
      repeat_last_n: 32,
      presence_penalty: 0.1,
      frequency_penalty: 9,
      seed: 7,
      num_predict: 20,
      stop: ["END", ""],
      num_ctx: 4096,
      mirostat: 1,
      temprature: 1,
      num_keep: null,
    };
    const { request, warnings } = chatRequest({ options });
    expect(request.sampling).toEqual({
      temperature: 0.5,
      topK: 40,
      topP: 0.9,
      minP: 0.05,
      repeatPenalty: 1.1,
      repeatLastN: 32,
      presencePenalty: 0.1,
      frequencyPenalty: 2,
      seed: 7,
    });
    expect(request.limits).toMatchObject({ maxTokens: 20, stop: ["END"] });
    expect(warnings).toEqual([
      "options.frequency_penalty: 9 is out of range; 2 is used",
      "options.num_ctx has no effect: it is set when the model is started",
      'invalid option provided: "mirostat"',
      "invalid option provided: \"temprature\"; did you mean 'temperature'?",
    ]);
  });

  test("no limit and a random seed are negative numbers", () => {
    const { request } = chatRequest({ options: { num_predict: -1, seed: -1 } });
    expect([request.limits.maxTokens, request.sampling.seed]).toEqual([undefined, undefined]);
  });

  test.each([
    [true, { mode: "on" }],
    [false, { mode: "off" }],
    ["high", { mode: "on", effort: "high" }],
    [null, undefined],
  ])("think %j", (think, reasoning) => expect(chatRequest({ think }).request.reasoning).toEqual(reasoning));

  test("format is json, a schema, or nothing", () => {
    const schema = { type: "object", properties: { a: { type: "integer" } } };
    expect(chatRequest({ format: "json" }).request.output).toEqual({ type: "json-object" });
    expect(chatRequest({ format: schema }).request.output).toMatchObject({ type: "json-schema", schema });
    expect(chatRequest({ format: "" }).request.output).toBeUndefined();
  });

  test("a call and its result without ids belong together", () => {
    const { request } = chatRequest({
      messages: [
        { role: "USER", content: "Weather?" },
        {
          role: "assistant",
          thinking: "Hm.",
          tool_calls: [{ function: { name: "a", arguments: { x: 1 } } }, { function: { name: "b" } }],
        },
        { role: "tool", tool_name: "b", content: "B" },
        { role: "tool", content: "A" },
        { role: "tool", tool_call_id: "elsewhere", content: "C" },
      ],
    });
    const { messages } = request.prompt as Extract<GenerationRequest["prompt"], { kind: "chat" }>;
    expect(messages).toMatchObject([
      { role: "user", content: "Weather?" },
      {
        content: [
          { type: "reasoning", text: "Hm." },
          { type: "tool-call", id: "call_1_0", name: "a", arguments: '{"x":1}' },
          { type: "tool-call", id: "call_1_1", name: "b", arguments: "{}" },
        ],
      },
      { role: "tool", toolCallId: "call_1_1", name: "b" },
      { role: "tool", toolCallId: "call_1_0", name: "a" },
      { role: "tool", toolCallId: "elsewhere" },
    ]);
  });

  // Both were refused, which Ollama 0.17.4 takes: what a role means is up to the template of the model.
  test.each(["robot", undefined])("a message of the role %j is a user's", (role) => {
    const sent = [
      { role, content: "Hi" },
      { role, content: "And?" },
    ];
    for (const profile of [lean, exact]) {
      const { request, warnings } = chatRequest({ messages: sent }, profile);
      expect(request.prompt).toMatchObject({ messages: sent.map(({ content }) => ({ role: "user", content })) });
      expect(warnings).toEqual([`messages[0].role is ${role ? '"robot"' : "absent"}: the message is sent as a user's`]);
    }
  });

  test("Granite's role control turns reasoning on, and is no message", () => {
    const messages = [
      { role: "control", content: "thinking" },
      { role: "user", content: "Hi" },
    ];
    const { request, warnings } = chatRequest({ messages });
    expect(request.reasoning).toEqual({ mode: "on" });
    expect(request.prompt).toMatchObject({ messages: [{ role: "user", content: "Hi", path: "messages[1]" }] });
    expect(warnings).toEqual([]);
    expect(chatRequest({ messages, think: false }).request.reasoning).toEqual({ mode: "off" });
  });

  test("images and sounds by their first bytes", () => {
    const images = ["iVBORw0KGgo=", "/9j/4AAQ", "UklGRgECAwRXQVZFZm10IA==", "UklGRgECAwRXRUJQVlA4IA=="];
    const { request } = chatRequest({ messages: [{ role: "user", content: "?", images }] });
    expect(request.prompt).toMatchObject({
      messages: [
        {
          content: [
            { type: "text" },
            { url: "data:image/png;base64,iVBORw0KGgo=" },
            { url: "data:image/jpeg;base64,/9j/4AAQ" },
            { type: "audio", format: "wav" },
            { url: "data:image/webp;base64,UklGRgECAwRXRUJQVlA4IA==" },
          ],
        },
      ],
    });
  });

  test.each([
    [{ keep_alive: 0, messages: [] }, { only: "unload" }, 0],
    [{ messages: [] }, { only: "load" }, undefined],
    [{ messages: null, keep_alive: "-1m" }, { only: "load" }, Infinity],
    [{ keep_alive: 2.5 }, {}, 2500],
  ])("%j loads, unloads or keeps the model", (body, answer, ms) => {
    const read = chatRequest(body);
    expect(read.answer).toEqual({ endpoint: "chat", ...answer });
    expect(read.keepAliveMs).toBe(ms);
    if (read.answer.only) expect(read.request.stream).toBe(false);
  });

  test.each<[object, number, string, string?]>([
    [{ model: "" }, 400, "model is required"],
    [
      { _debug_render_only: true },
      400,
      "'_debug_render_only' is not supported: POST /apply-template returns the prompt of a conversation.",
    ],
    [{ top_logprobs: 21 }, 400, "top_logprobs must be between 0 and 20"],
    [{ think: "huge" }, 400, 'invalid think value: "huge" (must be "high", "medium", "low", "max", true, or false)'],
    [{ think: 1 }, 400, 'think must be a boolean or string ("high", "medium", "low", "max", true, or false)'],
    [{ keep_alive: true }, 400, "Unsupported type: 'bool'"],
    [
      { stream: "yes" },
      400,
      "json: cannot unmarshal string into Go struct field ChatRequest.stream of type bool",
      "Invalid type for 'stream': expected a boolean, but got a string instead.",
    ],
    [
      { messages: [{ role: "user" }, { role: 5 }] },
      400,
      "json: cannot unmarshal number into Go struct field ChatRequest.messages.role of type string",
      "Invalid type for 'messages[1].role': expected a string, but got an integer instead.",
    ],
    [
      { messages: "Hi" },
      400,
      "json: cannot unmarshal string into Go struct field ChatRequest.messages of type []api.Message",
      "Invalid type for 'messages': expected an array, but got a string instead.",
    ],
    [
      { messages: [{ role: "user", images: ["a*b"] }] },
      400,
      "illegal base64 data at input byte 1",
      "messages[0].images[0]: illegal base64 data at input byte 1",
    ],
  ])("%j is refused", (body, status, vendors, own = vendors) => {
    expect(refusal(() => chatRequest(body, exact))).toMatchObject({ status, message: vendors });
    expect(refusal(() => chatRequest(body))).toMatchObject({ status, message: own });
  });

  /** Ollama answers these with 500, although the client is wrong. */
  test.each([
    [{ options: { temperature: "hot" } }, 'option "temperature" must be of type float32'],
    [{ options: { num_ctx: "1k" } }, 'option "num_ctx" must be of type integer'],
    [{ options: { stop: "END" } }, 'option "stop" must be of type array'],
    [{ options: { stop: [1] } }, 'option "stop" must be of an array of strings'],
    [{ format: "xml" }, 'invalid format: "\\"xml\\""; expected "json" or a valid JSON Schema object'],
  ])("%j is refused with the vendor's status in profile exact", (body, message) => {
    expect(refusal(() => chatRequest(body, exact))).toMatchObject({ status: 500, message });
    expect(refusal(() => chatRequest(body))).toMatchObject({ status: 400, message });
  });

  test("no JSON value makes the reader throw anything but a FailureError", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom("messages", "options", "tools", "format", "keep_alive", "think"),
        (value, name) => {
          for (const profile of [lean, exact]) {
            for (const body of [value, { model: "m", messages: [{ role: "user", content: "x" }], [name]: value }]) {
              try {
                readOllamaChat(body, "req_1", { profile });
                readOllamaGenerate(body, "req_1", { profile });
              } catch (error) {
                expect(error).toBeInstanceOf(FailureError);
              }
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

// Each result was looked for in all open calls: this took minutes.
test("a hundred thousand calls and twenty thousand results are paired", () => {
  const calls = Array.from({ length: 5000 }, (_, at) => ({ function: { name: `f${at % 7}`, arguments: {} } }));
  const messages = [
    ...Array.from({ length: 20 }, () => ({ role: "assistant", tool_calls: calls })),
    ...Array.from({ length: 19_900 }, (_, at) => ({ role: "tool", tool_name: `f${at % 7}`, content: "" })),
  ];
  const { prompt } = chatRequest({ messages }).request;
  const ids = (prompt as unknown as { messages: { toolCallId?: string }[] }).messages.flatMap(
    ({ toolCallId }) => toolCallId ?? [],
  );
  expect(new Set(ids).size).toBe(19_900);
  expect(ids.slice(0, 2)).toEqual(["call_0_0", "call_0_1"]);
});

test("more unknown members or options than any client sends are refused", () => {
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`member${at}`, at]));
  expect(refusal(() => chatRequest(many)).status).toBe(400);
  expect(refusal(() => chatRequest({ options: many })).status).toBe(400);
});

describe("generate requests", () => {
  const generate = (body: object): ReadOllamaRequest =>
    readOllamaGenerate({ model: "m", prompt: "Hi", ...body }, "req_1");

  test("a prompt is a user's message after the system message", () => {
    expect(generate({ system: "Be kind." }).request.prompt).toMatchObject({
      kind: "chat",
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "Hi" },
      ],
    });
  });

  test("raw and suffix are text, without a context in the answer", () => {
    expect(generate({ raw: true }).request.prompt).toEqual({ kind: "text", prompts: ["Hi"] });
    const { request, answer } = generate({ suffix: "end" });
    expect(request.prompt).toEqual({ kind: "text", prompts: ["Hi"], suffix: "end" });
    expect(answer.conversation).toBeUndefined();
  });

  /** The texts and refusals are those of Go's text/template. */
  test.each([
    ["{{ .Prompt }}", "Hi"],
    ["Q: {{- .Prompt -}} \n A:{{ .Response }}<end>", "Q:HiA:"],
    ["{{ if .System }}<s>{{ .System }}</s>{{ end }}{{ .Prompt }}", "Hi"],
    ["{{if .System}}a{{else}}b{{if .Prompt}}c{{end}}{{end}}d", "bcd"],
    [
      "{{ if .Suffix }}<PRE>{{ .Prompt }}<SUF>{{ .Suffix }}<MID>{{ else }}{{ .Prompt }}{{ end }}",
      "<PRE>Hi<SUF>end<MID>",
      "end",
    ],
  ])("the prompt in the template %j is %j", (template, prompt, suffix?: string) => {
    const { request, answer } = generate({ template, suffix });
    expect(request.prompt).toEqual({ kind: "text", prompts: [prompt] });
    expect(answer.conversation).toBeUndefined();
  });

  test.each([
    ["{{ .Prompt", "template: :1: unclosed action"],
    ["a\n{{ end }}", "template: :2: unexpected {{end}}"],
    ["{{ if .Prompt }}", "template: :1: unexpected EOF"],
  ])("the template %j is refused in Go's words", (template, message) => {
    expect(refusal(() => generate({ template }))).toMatchObject({ status: 400, message });
    const body = { model: "m", prompt: "Hi", template };
    expect(refusal(() => readOllamaGenerate(body, "req_1", { profile: exact }))).toMatchObject({
      status: 500,
      message,
    });
  });

  test("an Ollama gets a template that is not read here", () => {
    const body = { model: "m", prompt: "Hi", template: "{{ range .Messages }}{{ end }}" };
    expect(readOllamaGenerate(body, "req_1", { forwards: true }).request).toMatchObject({
      prompt: { prompts: ["Hi"] },
      passthrough: { body },
    });
  });

  test("the context of an answer continues its conversation, with one system message", () => {
    const first = [
      { role: "system", content: "Be kind." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Hello 😀" },
    ];
    const { request, answer } = generate({ prompt: "And?", system: "Be brief.", context: writeContext(first) });
    const roles = [
      ["system", "Be brief."],
      ["user", "Hi"],
      ["assistant", "Hello 😀"],
      ["user", "And?"],
    ];
    expect(request.prompt).toMatchObject({ messages: roles.map(([role, content]) => ({ role, content })) });
    expect(answer.conversation).toEqual(roles.map(([role, content]) => ({ role, content })));
  });

  test("every conversation survives its context", () => {
    const message = fc.record({ role: fc.constantFrom("user", "assistant"), content: fc.string({ unit: "grapheme" }) });
    fc.assert(
      fc.property(fc.array(message), (messages) => void expect(readContext(writeContext(messages))).toEqual(messages)),
    );
  });

  test("tokens of another server are no context of this one", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(), { minLength: 1 }), (context) => {
        expect(refusal(() => generate({ context })).message).toContain(
          "'context' is not from an answer of this server",
        );
      }),
    );
    const damaged = writeContext([{ role: "user", content: "Hi" }]).with(2, 0);
    expect(refusal(() => generate({ context: damaged })).status).toBe(400);
  });

  test.each([
    [{ model: "" }, 404, "model '' not found"],
    [{ raw: true, system: "x" }, 400, "raw mode does not support template, system, or context"],
    [
      { template: "{{ range .Messages }}{{ end }}" },
      400,
      "'template' may have .System, .Prompt, .Suffix and .Response",
    ],
    [{ template: "{{ .Prompt }}", context: writeContext([]) }, 400, "send it without 'template'"],
    [{ template: "{{ .Prompt }}", images: ["iVBORw0KGgo="] }, 400, "send them without 'raw', 'suffix' and 'template'"],
  ])("%j is refused", (body, status, message) => {
    expect(refusal(() => generate(body))).toMatchObject({
      status,
      message: expect.stringContaining(message) as unknown,
    });
  });
});

describe("models", () => {
  const info: ModelInfo = {
    id: "tiny",
    created: 1_800_000_000,
    ownedBy: "local",
    contextLength: 2048,
    endpoints: ["chat", "completions"],
    file: {
      bytes: 123,
      modified: 1_800_000_000,
      architecture: "qwen3",
      size: "1.7B",
      fileType: 15,
      template: "{% if tools %}<think></think>{% endif %}",
      metadata: { "general.architecture": "qwen3", "qwen3.context_length": 40960, "tokenizer.ggml.prefix_token_id": 1 },
    },
  };

  test("a name without a tag has the tag latest", () => {
    expect(["demo", "qwen3:8b", "hf:a/b", "localhost:1234/x", "hf:a/b:Q8_0"].map(ollamaName)).toEqual([
      "demo:latest",
      "qwen3:8b",
      "hf:a/b:latest",
      "localhost:1234/x:latest",
      "hf:a/b:Q8_0",
    ]);
  });

  test("a model in the list", () => {
    const list: unknown = JSON.parse(writeOllamaTags([{ info, digest: "ab" }]));
    expect(ollamaModelList.strict().safeParse(list).error).toBeUndefined();
    expect(list).toEqual({
      models: [
        {
          name: "tiny:latest",
          model: "tiny:latest",
          modified_at: "2027-01-15T08:00:00Z",
          size: 123,
          digest: "ab",
          details: {
            parent_model: "",
            format: "gguf",
            family: "qwen3",
            families: ["qwen3"],
            parameter_size: "1.7B",
            quantization_level: "Q4_K_M",
            context_length: 2048,
          },
          capabilities: ["completion", "tools", "insert", "thinking"],
        },
      ],
    });
  });

  test("show has the context length that the model is served with, and Copilot gets the requested name", () => {
    const shown = JSON.parse(writeOllamaShow(info, "tiny", "GitHubCopilotChat/0.30")) as Record<string, unknown>;
    expect(ollamaShownModel.strict().safeParse(shown).error).toBeUndefined();
    expect(shown["model_info"]).toMatchObject({ "qwen3.context_length": 2048, "general.basename": "tiny" });
    expect(shown["template"]).toBe(info.file?.template);
  });

  test("a model of another server has tools, since clients hide those without", () => {
    const { file: _, ...remote } = info;
    expect(capabilitiesOf({ ...remote, takesImages: true })).toEqual(["completion", "tools", "vision"]);
    expect(capabilitiesOf({ ...remote, endpoints: ["embeddings"] })).toEqual(["embedding"]);
  });

  // Every upstream that chats was listed as an embedder, since it may have any endpoint; Ollama's embedders do nothing else.
  test("a model that chats is no embedder, whatever endpoints its server may have", () => {
    const { file: _, ...remote } = info;
    const endpoints = ["chat", "completions", "embeddings"] as const;
    expect(capabilitiesOf({ ...remote, endpoints })).toEqual(["completion", "tools"]);
    expect(capabilitiesOf({ ...remote, endpoints, fillsInMiddle: true, reasons: true })).toEqual([
      "completion",
      "tools",
      "insert",
      "thinking",
    ]);
  });

  // It was sent to programs and chat servers, most of which ignore it: the answer went on as if nothing came after it.
  test("a suffix that nothing reads is refused in Ollama's words", () => {
    const { file, ...remote } = info;
    const check = (facts: Partial<ModelInfo>) => () =>
      checkCapabilities(readOllamaGenerate({ model: "m", prompt: "Hi", suffix: "end" }, "req_1").request, {
        ...remote,
        ...facts,
      });
    for (const facts of [{}, { fillsInMiddle: false }, { fillsInMiddle: false, ownedBy: "library" }])
      expect(check(facts)).toThrow("registry.ollama.ai/library/m:latest does not support insert");
    for (const facts of [{ file }, { fillsInMiddle: true }, { ownedBy: "library" }]) expect(check(facts)).not.toThrow();
  });

  test("reasoning and tools are refused of a model that is known not to support them", () => {
    const { file: _, ...remote } = info;
    const tools = [{ type: "function", function: { name: "f", parameters: {} } }];
    const asking = (more: object): GenerationRequest =>
      readOllamaChat({ model: "m", messages: [{ role: "user", content: "Hi" }], ...more }, "req_1").request;
    const check = (more: object, facts: Partial<ModelInfo>) => () =>
      checkCapabilities(asking(more), { ...remote, ...facts });
    const thinking = '"m" does not support thinking';
    expect(check({ think: true }, { reasons: false })).toThrow(thinking);
    expect(check({ think: "high" }, { reasons: false })).toThrow(thinking);
    expect(check({ tools }, { callsTools: false })).toThrow(
      "registry.ollama.ai/library/m:latest does not support tools",
    );
    for (const fits of [
      check({ think: false, tools: [] }, { reasons: false, callsTools: false }),
      check({ think: true, tools }, {}),
      check({ think: true, tools }, { reasons: true, callsTools: true }),
    ])
      expect(fits).not.toThrow();
  });

  test.each([
    ["hf.co/a/b:Q4_K_M", "hf:a/b:Q4_K_M"],
    ["huggingface.co/a/b", "hf:a/b"],
    ["hf:a/b", "hf:a/b"],
    ["llama3.2", undefined],
  ])("pull %s", (name, source) => {
    expect(readOllamaPull({ model: name }, lean)).toEqual({ name, stream: true, ...(source && { source }) });
    expect(readOllamaPull({ name, stream: false }, lean).stream).toBe(false);
  });
});

describe("embeddings", () => {
  test("vectors are cut and have the length 1, as Ollama's", () => {
    const read = readOllamaEmbed({ model: "m", input: ["a", "b"], dimensions: 2 }, "req_1", lean);
    expect(read.request.inputs).toEqual(["a", "b"]);
    const answer = { vectors: [[3, 4, 12]], promptTokens: 5 };
    expect(JSON.parse(writeOllamaEmbed(answer, read, 2))).toEqual({
      model: "m",
      embeddings: [[0.6, 0.8]],
      total_duration: 2_000_000,
      prompt_eval_count: 5,
    });
  });

  test.each([
    [{ model: "", input: "x" }, 404, "model '' not found"],
    [{ model: "m", input: 5 }, 400, "invalid input type"],
    [{ model: "m", input: [1, 2] }, 400, "invalid input type"],
  ])("%j is refused", (body, status, message) => {
    expect(refusal(() => readOllamaEmbed(body, "req_1", lean))).toMatchObject({ status, message });
  });
});
