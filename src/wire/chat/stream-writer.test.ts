import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { legalBatches } from "../../../test/support/legal-events.ts";
import { obviousStream } from "../../../test/support/obvious-chat-stream.ts";
import { accumulate } from "../../generation/accumulate.ts";
import type { GenerationEvent } from "../../generation/event.ts";
import type { AnswerContext, AskedAnswer } from "../endpoint.ts";
import { lean, openai } from "../profile.ts";
import type { Profile } from "../profile.ts";
import { chatEndpoint } from "./endpoint.ts";

const plain: AskedAnswer = {
  stream: true,
  includeUsage: false,
  logprobs: false,
  namedToolChoice: false,
  legacyFunctions: false,
  includeTimings: false,
};

function context(profile: Profile, asked: Partial<AskedAnswer> = {}): AnswerContext {
  return {
    profile,
    asked: { ...plain, ...asked },
    id: "chatcmpl-Test",
    created: 1_800_000_000,
    model: 'mo"del',
    settings: {},
    random: () => 0,
  };
}

function written(batches: readonly (readonly GenerationEvent[])[], answer: AnswerContext): string {
  const writer = chatEndpoint.streamWriter(answer);
  return batches.map((batch) => writer.write(batch)).join("");
}

/** Data lines, parsed; [DONE] is left out. */
function chunks(stream: string): Chunk[] {
  const events = stream.split("\n\n").filter(Boolean);
  return events.filter((event) => event.startsWith("data: {")).map((event): Chunk => JSON.parse(event.slice(6)));
}

interface Chunk {
  readonly id: string;
  readonly created: number;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: Readonly<Record<string, unknown>> & {
      readonly content?: string;
      readonly tool_calls?: readonly { index: number; id?: string; function: { name?: string; arguments: string } }[];
    };
    readonly logprobs: { readonly content: unknown[] } | null;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: unknown;
  readonly error?: unknown;
}

describe("requirement W2", () => {
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

  test("fragments without text are skipped (W4), a reason that comes with text stands alone (W5, W6)", () => {
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

describe("any legal generation", () => {
  const asked = fc.record({
    includeUsage: fc.boolean(),
    includeObfuscation: fc.constantFrom(undefined, true, false),
    logprobs: fc.boolean(),
    namedToolChoice: fc.boolean(),
    includeReasoning: fc.constantFrom(undefined, true, false),
    includeStopString: fc.boolean(),
  });

  test.each([lean, openai])("is written in profile $name as the obvious encoder writes it", (profile) => {
    fc.assert(
      fc.property(
        legalBatches({ logprobs: true }),
        asked,
        (batches, { includeObfuscation, includeReasoning, ...rest }) => {
          const answer = context(profile, {
            ...rest,
            ...(includeObfuscation !== undefined && { includeObfuscation }),
            ...(includeReasoning !== undefined && { includeReasoning }),
          });
          expect(written(batches, answer)).toBe(obviousStream(batches.flat(), answer));
        },
      ),
      { numRuns: 400 },
    );
  });

  test.each([lean, openai])("is the same message streamed in profile $name as not streamed (N5)", (profile) => {
    fc.assert(
      fc.property(legalBatches(), (batches) => {
        const answer = context(profile, { includeUsage: true });
        const body: { choices: { message: Record<string, unknown>; finish_reason: string }[]; usage?: unknown } =
          JSON.parse(chatEndpoint.writeResponse(accumulate(batches.flat()), answer));
        const streamed = messagesOf(chunks(written(batches, answer)));
        const whole = body.choices.map(({ message, finish_reason: reason }) => comparable(message, reason));
        expect(streamed.messages).toEqual(whole);
        expect(streamed.usage).toEqual(body.usage);
      }),
      { numRuns: 300 },
    );
  });

  test("keeps every rule of the stream in profile lean (W1 to W15)", () => {
    fc.assert(
      fc.property(legalBatches(), fc.boolean(), (batches, includeUsage) => {
        const stream = written(batches, context(lean, { includeUsage }));
        expect(stream).toMatch(/^(data: [^\n]+\n\n)*data: \[DONE\]\n\n$/); // W7, W9
        const all = chunks(stream);
        const withChoice = all.filter(({ choices }) => choices.length > 0);
        expect(new Set(all.map(({ id, created }) => `${id} ${created}`)).size).toBeLessThanOrEqual(1); // W8
        const usages = all.map(({ usage }) => usage);
        if (!includeUsage) expect(all.every((chunk) => !("usage" in chunk) && chunk.choices.length === 1)).toBe(true); // W11
        else {
          expect(usages.slice(0, withChoice.length).every((usage) => usage === null)).toBe(true);
          expect(all.slice(withChoice.length).length).toBeLessThanOrEqual(1);
        }
        const choices = new Set(batches.flat().flatMap((event) => (event.type === "start" ? [event.choice] : [])));
        for (const index of choices)
          checkChoice(withChoice.flatMap((chunk) => chunk.choices.filter((one) => one.index === index)));
      }),
      { numRuns: 300 },
    );
  });
});

function checkChoice(list: readonly Chunk["choices"][number][]): void {
  const deltas = list.map(({ delta }) => delta);
  expect(deltas[0]).toEqual({ role: "assistant" }); // W1
  expect(deltas.slice(1).every((delta) => !("role" in delta))).toBe(true);
  expect(deltas.slice(0, -1).every((delta) => Object.keys(delta).length === 1)).toBe(true); // W3
  expect(deltas.every(({ content }) => content !== "")).toBe(true); // W4
  expect(deltas.at(-1)).toEqual({}); // W5
  expect(list.slice(0, -1).every((choice) => choice.finish_reason === null)).toBe(true);
  expect(list.at(-1)?.finish_reason).toBeTypeOf("string");
  for (const choice of list) expect(Object.keys(choice)).toEqual(["index", "delta", "logprobs", "finish_reason"]); // W10
  const calls = deltas.flatMap(({ tool_calls: calls = [] }) => calls);
  const headers = calls.filter(({ id }) => id !== undefined); // W14
  expect(headers.map(({ index }) => index)).toEqual(headers.map((_, index) => index));
  expect(headers.every((call) => call.function.arguments === "")).toBe(true);
  let last = -1;
  for (const { index, id, function: called } of calls) {
    expect(index).toBe(id === undefined ? last : last + 1);
    if (id === undefined) expect(Object.keys(called)).toEqual(["arguments"]);
    last = index;
  }
}

interface Told {
  readonly content: string;
  readonly refusal: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly reason: string;
}

function messagesOf(list: readonly Chunk[]): { readonly messages: readonly Told[]; readonly usage: unknown } {
  const messages: {
    content: string;
    refusal: string;
    reasoning: string;
    calls: { id: string; name: string; arguments: string }[];
    reason: string;
  }[] = [];
  for (const { choices } of list) {
    for (const { index, delta, finish_reason: reason } of choices) {
      const message = (messages[index] ??= { content: "", refusal: "", reasoning: "", calls: [], reason: "" });
      message.content += delta.content ?? "";
      message.refusal += (delta["refusal"] as string | undefined) ?? "";
      message.reasoning += (delta["reasoning_content"] as string | undefined) ?? "";
      for (const { index: at, id, function: called } of delta.tool_calls ?? []) {
        const call = (message.calls[at] ??= { id: id ?? "", name: called.name ?? "", arguments: "" });
        call.arguments += called.arguments;
      }
      message.reason += reason ?? "";
    }
  }
  const usages = list.flatMap(({ usage }) => (usage ? [usage] : []));
  return { messages, usage: usages[0] };
}

function comparable(message: Readonly<Record<string, unknown>>, reason: string): Told {
  const calls = (message["tool_calls"] ?? []) as { id: string; function: { name: string; arguments: string } }[];
  return {
    content: (message["content"] as string | null) ?? "",
    refusal: (message["refusal"] as string | null | undefined) ?? "",
    reasoning: (message["reasoning_content"] as string | undefined) ?? "",
    calls: calls.map(({ id, function: called }) => ({ id, ...called })),
    reason,
  };
}

describe("ends that are none (E1)", () => {
  const failure = { message: "gone", status: 503, type: "server_error" };
  const error = 'data: {"error":{"message":"gone","type":"server_error","param":null,"code":null}}\n\ndata: [DONE]\n\n';

  test("an error in the middle is told, no finish is invented", () => {
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

  test.each([lean, openai])(
    "a failure before any text, after the answer was opened: role, error, [DONE] ($name)",
    (profile) => {
      const writer = chatEndpoint.streamWriter(context(profile));
      const opened = writer.open();
      expect(chunks(opened)).toHaveLength(1);
      expect(writer.open()).toBe("");
      expect(writer.keepAlive()).toBe(": keep-alive\n\n");
      expect(writer.write([{ type: "end", end: { kind: "idle-timeout", failure } }])).toBe(error);
      expect(writer.write([{ type: "text-delta", choice: 0, text: "late" }])).toBe("");
    },
  );

  test("a failure that is all there is still comes after a role chunk", () => {
    const stream = written([[{ type: "end", end: { kind: "truncated", failure } }]], context(lean));
    expect(chunks(stream)[0]?.choices[0]?.delta).toEqual({ role: "assistant" });
    expect(stream.endsWith(error)).toBe(true);
  });

  test("a client that is gone is sent nothing", () => {
    expect(written([[{ type: "end", end: { kind: "client-gone" } }]], context(lean))).toBe("");
  });

  test("the role is not repeated after an early opening", () => {
    const writer = chatEndpoint.streamWriter(context(openai));
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
  test("legacy functions are answered in kind", () => {
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

  test("extras go where the settings let them, never as a second field of a delta", () => {
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

  test("timings come beside the usage, on request", () => {
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

  test("a second reasoning field goes in a delta of its own", () => {
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

  test("a source's dated model is shown in profile openai, another name never", () => {
    const stream = (model: string, profile: Profile): string =>
      written(
        [
          [
            { type: "start", choice: 0, source: { model, id: "chatcmpl-own", created: 5 } },
            { type: "text-delta", choice: 0, text: "a" },
          ],
        ],
        {
          ...context(profile),
          model: "gpt-x",
        },
      );
    expect(stream("gpt-x-2026-01-01", openai)).toContain(
      '"id":"chatcmpl-own","object":"chat.completion.chunk","created":5,"model":"gpt-x-2026-01-01"',
    );
    expect(stream("/models/file.gguf", openai)).toContain('"model":"gpt-x"');
    expect(stream("gpt-x-2026-01-01", lean)).toContain('"model":"gpt-x"');
  });
});
