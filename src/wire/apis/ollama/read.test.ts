import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../core/events.ts";
import { accumulate } from "../../core/accumulate.ts";
import { OllamaReader } from "./read.ts";

type Json = Readonly<Record<string, unknown>>;

const head = { model: "qwen3:8b", created_at: "2026-08-22T01:48:22.123456789Z" };
const delta = (message: Json): Json => ({
  ...head,
  message: { role: "assistant", content: "", ...message },
  done: false,
});
const done: Json = {
  ...delta({}),
  done: true,
  done_reason: "stop",
  total_duration: 5_043_500_667,
  load_duration: 40_000_000,
  prompt_eval_count: 26,
  prompt_eval_duration: 325_953_000,
  eval_count: 290,
  eval_duration: 4_709_213_000,
};
const call = (name: string, args: unknown, id?: string): Json => ({
  ...(id !== undefined && { id }),
  function: { index: 0, name, arguments: args },
});

function reader(): OllamaReader {
  let calls = 0;
  return new OllamaReader({ newCallId: () => `call_${++calls}`, choices: 1 });
}

function read(lines: readonly (Json | string)[], end = true): GenerationEvent[] {
  const own = reader();
  const text = lines.map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join("");
  return [...own.push(text), ...(end ? own.end() : [])];
}

const types = (events: readonly GenerationEvent[]): string[] => events.map(({ type }) => type);
const endOf = (events: readonly GenerationEvent[]): unknown => {
  const last = events.at(-1);
  return last?.type === "end" ? last.end : last;
};

const stream = [
  delta({ thinking: "The user " }),
  delta({ thinking: "greets. 😀" }),
  delta({ content: "Hel" }),
  delta({ content: "lo é\n" }),
  delta({ tool_calls: [call("read", { path: "a", n: [1] }), call("read", {}, "call_own")] }),
  done,
];

describe("an answer", () => {
  test("becomes reasoning, text, calls, a reason, counts and times", () => {
    expect(read(stream)).toEqual([
      { type: "start", choice: 0, source: { model: "qwen3:8b", created: 1_787_363_302 } },
      { type: "reasoning-delta", choice: 0, text: "The user " },
      { type: "reasoning-delta", choice: 0, text: "greets. 😀" },
      { type: "text-delta", choice: 0, text: "Hel" },
      { type: "text-delta", choice: 0, text: "lo é\n" },
      { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "read" },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"path":"a","n":[1]}' },
      { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
      { type: "tool-call-start", choice: 0, index: 1, id: "call_own", name: "read" },
      { type: "tool-call-delta", choice: 0, index: 1, arguments: "{}" },
      { type: "tool-call-end", choice: 0, index: 1, status: "succeeded" },
      { type: "finish", choice: 0, reason: "tool-calls" },
      {
        type: "usage",
        usage: { promptTokens: 26, completionTokens: 290 },
        timings: {
          queuedMs: 40,
          promptMs: 325.953,
          generationMs: 4709.213,
          promptTokensPerSecond: (26 / 325.953) * 1000,
          tokensPerSecond: (290 / 4709.213) * 1000,
        },
      },
      { type: "end", end: { kind: "done" } },
    ]);
  });

  test("is the same however its bytes are split", () => {
    const whole = read(stream);
    const bytes = new TextEncoder().encode(stream.map((line) => `${JSON.stringify(line)}\n`).join(""));
    fc.assert(
      fc.property(fc.array(fc.nat({ max: bytes.length }), { maxLength: 8 }), (cuts) => {
        const own = reader();
        const events: GenerationEvent[] = [];
        let from = 0;
        for (const cut of [...cuts.toSorted((a, b) => a - b), bytes.length]) {
          events.push(...own.push(bytes.subarray(from, cut)));
          from = cut;
        }
        expect([...events, ...own.end()]).toEqual(whole);
      }),
    );
  });

  test("is the same whole: in one object, without a stream", () => {
    const message = {
      role: "assistant",
      content: "Hello é\n",
      thinking: "The user greets. 😀",
      tool_calls: [call("read", { path: "a", n: [1] }), call("read", {}, "call_own")],
    };
    const body = reader().readBody({ ...done, message });
    const streamed = accumulate(read(stream));
    expect(accumulate(body)).toEqual(streamed);
  });

  test("of /api/generate has its text in `response`", () => {
    const line = (members: Json): Json => ({ ...head, response: "", done: false, ...members });
    const events = read([
      line({ response: "on" }),
      line({ response: "ce" }),
      { ...done, message: undefined, response: "" },
    ]);
    expect(events.filter(({ type }) => type === "text-delta")).toMatchObject([{ text: "on" }, { text: "ce" }]);
    expect(endOf(events)).toEqual({ kind: "done" });
  });

  test("has the log probabilities of its tokens", () => {
    const logprob = { token: "Hel", logprob: -0.5, bytes: [72, 101, 108] };
    const [, text] = read([
      { ...delta({ content: "Hel" }), logprobs: [{ ...logprob, top_logprobs: [logprob] }] },
      done,
    ]);
    expect(text).toEqual({ type: "text-delta", choice: 0, text: "Hel", logprobs: [{ ...logprob, top: [logprob] }] });
  });

  // Ollama lists the tokens of the reasoning, too (0.17.4); they were passed on as those of the text.
  test("has no log probabilities of its reasoning", () => {
    const logprobs = (...tokens: readonly string[]) => tokens.map((token) => ({ token, logprob: -0.5 }));
    const events = read([
      { ...delta({ content: "", thinking: "Hm" }), logprobs: logprobs("Hm") },
      { ...delta({ content: "Hi", thinking: "." }), logprobs: logprobs(".", "Hi") },
      done,
    ]);
    const texts = events.filter((event) => event.type === "text-delta");
    expect(texts).toMatchObject([{ text: "Hi", logprobs: [{ token: "Hi" }] }]);
  });

  // Ollama's bytes of a token that is part of a character are those of U+FFFD, and were passed on as those of the token. The tokens of the
  // tests were whole characters.
  test("has no bytes of tokens that are part of a character: Ollama sends those of U+FFFD", () => {
    const cut = { token: "\ufffd", logprob: -0.5, bytes: [0xef, 0xbf, 0xbd] };
    const whole = { token: "é", logprob: -1, bytes: [0xc3, 0xa9] };
    const [, text] = read([
      {
        ...delta({ content: "é" }),
        logprobs: [
          { ...cut, top_logprobs: [whole, cut] },
          { ...whole, top_logprobs: [cut] },
        ],
      },
      done,
    ]);
    expect(text).toMatchObject({
      logprobs: [
        { token: "\ufffd", bytes: null, top: [whole, { ...cut, bytes: null }] },
        { ...whole, top: [{ ...cut, bytes: null }] },
      ],
    });
  });

  test("that only loads the model is empty and complete", () => {
    const events = read([{ ...delta({}), done: true, done_reason: "load" }]);
    expect(types(events)).toEqual(["start", "finish", "end"]);
    expect(endOf(events)).toEqual({ kind: "done" });
  });

  test("that was cut by a limit keeps this reason, with calls too", () => {
    const cut = read([delta({ tool_calls: [call("f", {})] }), { ...done, done_reason: "length" }]);
    expect(cut).toContainEqual({ type: "finish", choice: 0, reason: "length" });
  });

  test("without counts has no usage: a count of 0 is absent from the JSON, and others are not invented", () => {
    const { prompt_eval_count: _, ...cached } = done;
    expect(read([cached])).toContainEqual(
      expect.objectContaining({ type: "usage", usage: { promptTokens: 0, completionTokens: 290 } }),
    );
    expect(types(read([{ ...delta({ content: "a" }), done: true }]))).not.toContain("usage");
  });
});

describe("a failure", () => {
  test.each([
    ["an error line", [delta({ content: "a" }), { error: "CUDA error" }, done], "upstream-error", "CUDA error"],
    ["a line that is no JSON", [delta({ content: "a" }), '{"model": x}', done], "upstream-error", "not JSON"],
    ["a line that is no object", ["[1]"], "upstream-error", "not an object"],
    ["the end before `done`", [delta({ content: "a" })], "truncated", "ended too early"],
    ["a last line that is cut", [delta({ content: "a" }), '{"model":"m","mess'], "truncated", "ended too early"],
    [
      "a reason that is a failure",
      [delta({ content: "a" }), { ...done, done_reason: "error" }],
      "upstream-error",
      "error",
    ],
    ["a page", ["<html>Bad gateway</html>"], "upstream-error", "Bad gateway"],
  ] as const)("%s ends the answer", (_, lines, kind, words) => {
    const end = endOf(read(lines));
    expect(end).toMatchObject({ kind, failure: { message: expect.stringContaining(words) as unknown } });
  });

  test("of a connection keeps the text, and is no normal end", () => {
    const own = reader();
    const events = [...own.push(`${JSON.stringify(delta({ content: "a" }))}\n`), ...own.end(new Error("reset"))];
    expect(types(events)).toEqual(["start", "text-delta", "end"]);
    expect(endOf(events)).toMatchObject({ kind: "truncated" });
  });

  test("in place of a whole answer has the server's words", () => {
    expect(endOf(reader().readBody({ error: "model is overloaded" }))).toMatchObject({
      failure: { message: "model is overloaded" },
    });
    expect(endOf(reader().readBody({ ...delta({ content: "a" }) }))).toMatchObject({ kind: "upstream-error" });
  });
});

describe("calls", () => {
  test("have ids of their own, also where the server repeats one", () => {
    const events = read([delta({ tool_calls: [call("f", {}, "x"), call("f", {}, "x"), call("f", {})] }), done]);
    const ids = events.flatMap((event) => (event.type === "tool-call-start" ? [event.id] : []));
    expect(new Set(ids).size).toBe(3);
    expect(ids[0]).toBe("x");
  });

  test("with other arguments than an object are read as text", () => {
    const calls = [call("f", '{"a":1}'), call("f", null), call("f", "{broken"), { function: { arguments: {} } }, null];
    const own = reader();
    const events = own.push(`${JSON.stringify(delta({ tool_calls: calls }))}\n${JSON.stringify(done)}\n`);
    const texts = events.flatMap((event) => (event.type === "tool-call-delta" ? [event.arguments] : []));
    expect(texts).toEqual(['{"a":1}', "{}", "{broken"]);
    expect(events).toContainEqual(expect.objectContaining({ status: "failed", raw: "{broken" }));
    expect(own.repairs.list().map(({ id }) => id)).toEqual([
      "call-id",
      "call-arguments",
      "no-arguments",
      "nameless-call",
    ]);
  });
});

// A reader must not throw, and must end every answer once, whatever a server sends.
test("for any JSON, the answer ends once", () => {
  const anything = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<unknown>;
  const line = fc.record(
    {
      message: fc.oneof(anything, fc.record({ content: anything, thinking: anything, tool_calls: anything })),
      response: anything,
      done: fc.oneof(fc.boolean(), anything),
      done_reason: anything,
      error: anything,
      logprobs: anything,
      prompt_eval_count: anything,
      eval_count: anything,
      eval_duration: anything,
      created_at: anything,
      model: anything,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
      const events = read(lines as Json[]);
      expect(events.filter(({ type }) => type === "end")).toHaveLength(1);
      expect(events.at(-1)?.type).toBe("end");
    }),
  );
});
