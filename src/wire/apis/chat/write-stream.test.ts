import { describe, expect, test } from "vitest";
import { chunks, context, written } from "../../../../test/support/chat-stream.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { exact, lean } from "../profile.ts";
import type { Profile } from "../profile.ts";
import { writeChatResponse } from "./write-body.ts";
import { ChatStreamWriter } from "./write-stream.ts";

describe("a stream of profile lean", () => {
  test("the first chunks, to the byte", () => {
    const stream = written(
      [
        [
          { type: "start", choice: 0 },
          { type: "text-delta", choice: 0, text: "Hello" },
        ],
        [{ type: "text-delta", choice: 0, text: "!" }],
      ],
      { ...context(lean), model: "tiny" },
    );
    const envelope =
      '"id":"chatcmpl-Test","object":"chat.completion.chunk","created":1800000000,"model":"tiny","system_fingerprint":null';
    const chunk = (delta: string): string =>
      `data: {${envelope},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":null}]}\n\n`;
    expect(stream).toBe(chunk('{"role":"assistant"}') + chunk('{"content":"Hello"}') + chunk('{"content":"!"}'));
  });

  test("fragments without text are skipped, a finish reason that comes with text stands alone", () => {
    const texts = ["", "Hello", "", " world", ""].map((text) => ({ type: "text-delta", choice: 0, text }) as const);
    const stream = written(
      [
        [
          { type: "start", choice: 0 },
          ...texts,
          { type: "finish", choice: 0, reason: "stop" },
          { type: "end", end: { kind: "done" } },
        ],
      ],
      context(lean),
    );
    expect(chunks(stream).map(({ choices: [choice] }) => [choice?.delta, choice?.finish_reason])).toEqual([
      [{ role: "assistant" }, null],
      [{ content: "Hello" }, null],
      [{ content: " world" }, null],
      [{}, "stop"],
    ]);
    expect(stream.endsWith("\n\ndata: [DONE]\n\n")).toBe(true);
  });
});

describe("answers that break off", () => {
  const failure = { message: "gone", status: 503, kind: "unavailable" as const };
  const error = 'data: {"error":{"message":"gone","type":"server_error","param":null,"code":null}}\n\ndata: [DONE]\n\n';

  test("an error within a stream is sent, without a finish chunk", () => {
    const stream = written(
      [
        [
          { type: "start", choice: 0 },
          { type: "text-delta", choice: 0, text: "a" },
        ],
        [{ type: "end", end: { kind: "engine-error", failure } }],
      ],
      context(lean),
    );
    expect(stream.endsWith(error)).toBe(true);
    expect(chunks(stream).filter((chunk) => chunk.choices?.some((choice) => choice.finish_reason !== null))).toEqual(
      [],
    );
  });

  test.each([lean, exact])(
    "a failure before any text, after the answer was opened: role, error, [DONE] ($name)",
    (profile) => {
      const writer = new ChatStreamWriter(context(profile));
      const opened = writer.open();
      expect(chunks(opened)).toHaveLength(1);
      expect(writer.open()).toBe("");
      expect(writer.keepAlive()).toBe(": keep-alive\n\n");
      expect(writer.write([{ type: "end", end: { kind: "idle-timeout", failure } }])).toBe(error);
      expect(writer.write([{ type: "text-delta", choice: 0, text: "late" }])).toBe("");
    },
  );

  test("a failure without any text is sent after a role chunk", () => {
    const stream = written([[{ type: "end", end: { kind: "truncated", failure } }]], context(lean));
    expect(chunks(stream)[0]?.choices[0]?.delta).toEqual({ role: "assistant" });
    expect(stream.endsWith(error)).toBe(true);
  });

  test("a client that has disconnected is sent nothing", () => {
    expect(written([[{ type: "end", end: { kind: "client-gone" } }]], context(lean))).toBe("");
  });

  test("the role is not repeated after an early opening", () => {
    const writer = new ChatStreamWriter(context(exact));
    const stream =
      writer.open() +
      writer.write([
        { type: "start", choice: 0 },
        { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" },
      ]);
    expect(chunks(stream).map(({ choices: [choice] }) => choice?.delta["role"])).toEqual(["assistant", undefined]);
  });
});

describe("extensions", () => {
  test("a request with legacy functions gets function_call", () => {
    const stream = written(
      [
        [
          { type: "start", choice: 0 },
          { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" },
          { type: "tool-call-delta", choice: 0, index: 0, arguments: "{}" },
          { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
          { type: "finish", choice: 0, reason: "tool-calls" },
          { type: "end", end: { kind: "done" } },
        ],
      ],
      context(lean, { legacyFunctions: true }),
    );
    expect(chunks(stream).map(({ choices: [choice] }) => choice?.delta)).toEqual([
      { role: "assistant" },
      { function_call: { name: "f", arguments: "" } },
      { function_call: { arguments: "{}" } },
      {},
    ]);
    expect(chunks(stream).at(-1)?.choices[0]?.finish_reason).toBe("function_call");
  });

  test("a custom tool's input is text of its own member", () => {
    const stream = written(
      [
        [
          { type: "start", choice: 0 },
          { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "run", kind: "custom" },
          { type: "tool-call-delta", choice: 0, index: 0, arguments: "print(" },
          { type: "tool-call-delta", choice: 0, index: 0, arguments: '"hi")' },
        ],
      ],
      context(lean),
    );
    expect(chunks(stream).map(({ choices: [choice] }) => choice?.delta.tool_calls?.[0])).toEqual([
      undefined,
      { index: 0, id: "call_0", type: "custom", custom: { name: "run", input: "" } },
      { index: 0, custom: { input: "print(" } },
      { index: 0, custom: { input: '"hi")' } },
    ]);
  });

  test("extra members are sent where the settings allow them, never as a second member of a delta", () => {
    const events: GenerationEvent[] = [
      { type: "start", choice: 0 },
      { type: "extra", place: "chunk", value: { citations: ["x"], secret: 1 } },
      { type: "text-delta", choice: 0, text: "a" },
      { type: "extra", place: "delta", choice: 0, value: { annotations: [1], secret: 1 } },
      { type: "text-delta", choice: 0, text: "b" },
      { type: "extra", place: "choice", choice: 0, value: { token_ids: [1] } },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ];
    const passExtra = ["citations", "annotations", "token_ids"];
    const all = chunks(written([events], { ...context(lean), settings: { passExtra } }));
    expect(all.map(({ choices: [choice] }) => choice?.delta)).toEqual([
      { role: "assistant" },
      { content: "a" },
      { annotations: [1] },
      { content: "b" },
      {},
    ]);
    expect(all[1]).toMatchObject({ citations: ["x"] });
    expect(all[2]).not.toHaveProperty("citations");
    expect(all[4]?.choices[0]).toMatchObject({ token_ids: [1] });
    expect(JSON.stringify(all)).not.toContain("secret");
    expect(JSON.stringify(chunks(written([events], context(lean))))).not.toMatch(/citations|annotations|token_ids/);
  });

  test("timings are sent next to usage, on request", () => {
    const timings = { queuedMs: 1, promptMs: 2, generationMs: 4, promptTokensPerSecond: 1000, tokensPerSecond: 500 };
    const events: GenerationEvent[] = [
      { type: "start", choice: 0 },
      { type: "finish", choice: 0, reason: "stop" },
      { type: "usage", usage: { promptTokens: 5, completionTokens: 2, promptDetails: { cached_tokens: 3 } }, timings },
      { type: "end", end: { kind: "done" } },
    ];
    expect(chunks(written([events], context(lean, { includeUsage: true, includeTimings: true }))).at(-1)).toMatchObject(
      {
        choices: [],
        usage: { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7, prompt_tokens_details: { cached_tokens: 3 } },
        timings: { queued_ms: 1, cache_n: 3, prompt_n: 2, predicted_n: 2, predicted_per_second: 500 },
      },
    );
  });

  // A program that counts nothing had no usage chunk in a stream, though `include_usage` asks for one: openai-go showed 0 tokens.
  test("what the source has not counted is estimated, as in a whole answer", () => {
    const events: GenerationEvent[] = [
      { type: "start", choice: 0 },
      { type: "reasoning-delta", choice: 0, text: "The user greets." },
      { type: "text-delta", choice: 0, text: "Hello there, " },
      { type: "text-delta", choice: 0, text: "how are you?" },
      { type: "tool-call-start", choice: 0, index: 0, id: "call_0", name: "f" },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"a":' },
      { type: "tool-call-delta", choice: 0, index: 0, arguments: '"0123456789"}' },
      { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
      { type: "finish", choice: 0, reason: "tool-calls" },
      { type: "start", choice: 1 },
      { type: "refusal-delta", choice: 1, text: "I cannot help with that." },
      { type: "finish", choice: 1, reason: "stop" },
      { type: "end", end: { kind: "done" } },
    ];
    const asked = context(lean, { includeUsage: true, estimatePrompt: () => 7 });
    const whole = JSON.parse(writeChatResponse(accumulate(events), asked)) as { readonly usage: object };
    expect(chunks(written([events], asked)).at(-1)).toMatchObject({ choices: [], usage: whole.usage });
    expect(chunks(written([events], context(lean, { estimatePrompt: () => 7 }))).at(-1)).not.toHaveProperty("usage");
  });

  test("a second reasoning member has its own delta", () => {
    const events: GenerationEvent[] = [
      { type: "start", choice: 0 },
      { type: "reasoning-delta", choice: 0, text: "hm" },
    ];
    const settings = { reasoningFields: ["reasoning_content", "reasoning"] } as const;
    const deltas = chunks(written([events], { ...context(lean), settings })).map(
      ({ choices: [choice] }) => choice?.delta,
    );
    expect(deltas).toEqual([{ role: "assistant" }, { reasoning_content: "hm" }, { reasoning: "hm" }]);
  });

  test("a source's dated model is shown in profile exact, another name never", () => {
    const stream = (model: string, profile: Profile): string =>
      written(
        [
          [
            { type: "start", choice: 0, source: { model, id: "chatcmpl-own0123456789abc", created: 5 } },
            { type: "text-delta", choice: 0, text: "a" },
          ],
        ],
        {
          ...context(profile),
          model: "gpt-x",
        },
      );
    expect(stream("gpt-x-2026-01-01", exact)).toContain(
      '"id":"chatcmpl-own0123456789abc","object":"chat.completion.chunk","created":5,"model":"gpt-x-2026-01-01"',
    );
    expect(stream("/models/file.gguf", exact)).toContain('"model":"gpt-x"');
    expect(stream("gpt-x-2026-01-01", lean)).toContain('"model":"gpt-x"');
  });
});
