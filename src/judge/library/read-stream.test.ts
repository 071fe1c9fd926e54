import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulateStream, readChatAnswer, readChatStream } from "./read-stream.ts";
import type { StreamSource } from "./read-stream.ts";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";

const done = "data: [DONE]\n\n";
const chunk = (choice: object, index = 0): string => {
  const envelope = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "m" };
  return `data: ${JSON.stringify({ ...envelope, choices: [{ index, ...choice }] })}\n\n`;
};
const read = (source: StreamSource): Promise<Generation> => accumulateStream(readChatStream(source));
const callOf = (fields: object, index = 0): object => ({ index, type: "function", ...fields });

describe("what upstreams do to a stream", () => {
  test("choices is empty, before and behind the text", async () => {
    const bare = 'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[]}\n\n';
    const { choices, end } = await read(
      bare + chunk({ delta: { content: "Hi" } }) + bare + chunk({ delta: {}, finish_reason: "stop" }) + bare + done,
    );
    expect([choices[0]?.text, choices[0]?.finish?.reason, end.kind]).toEqual(["Hi", "stop", "done"]);
  });

  test("finish_reason is absent, not null", async () => {
    const { choices } = await read(
      chunk({ delta: { content: "Hi" } }) + chunk({ delta: {}, finish_reason: "length" }) + done,
    );
    expect(choices[0]).toMatchObject({ text: "Hi", finish: { reason: "length" } });
  });

  test("arguments come in the last chunk, with the finish reason", async () => {
    const { choices } = await read(
      chunk({ delta: { tool_calls: [callOf({ id: "call_1", function: { name: "f", arguments: "" } })] } }) +
        chunk({
          delta: { tool_calls: [callOf({ function: { arguments: '{"a":0}' } })] },
          finish_reason: "tool_calls",
        }) +
        done,
    );
    expect(choices[0]?.toolCalls).toEqual([
      { id: "call_1", name: "f", kind: "function", arguments: '{"a":0}', status: "succeeded" },
    ]);
  });

  test("name and arguments come in one delta, several calls in one, and arguments are empty", async () => {
    const calls = [
      callOf({ id: "call_1", function: { name: "f", arguments: '{"a":false}' } }),
      callOf({ id: "call_2", function: { name: "g", arguments: "" } }, 1),
    ];
    const { choices } = await read(chunk({ delta: { tool_calls: calls }, finish_reason: "tool_calls" }) + done);
    expect(choices[0]?.toolCalls.map(({ name, arguments: text, status }) => [name, text, status])).toEqual([
      ["f", '{"a":false}', "succeeded"],
      ["g", "{}", "succeeded"],
    ]);
  });

  test("a finish reason comes before the end: what follows is kept, and so is the reason", async () => {
    const { choices } = await read(
      chunk({ delta: { content: "a" }, finish_reason: "length" }) +
        chunk({ delta: { content: "b" }, finish_reason: null }) +
        chunk({ delta: {}, finish_reason: "stop" }) +
        done,
    );
    expect(choices[0]).toMatchObject({ text: "ab", finish: { reason: "length" } });
  });
});

test("tool_calls without calls ends a text, and is an error of the upstream without one", async () => {
  const announced = chunk({ delta: {}, finish_reason: "tool_calls" }) + done;
  const { choices, end } = await read(chunk({ delta: { content: "x" } }) + announced);
  expect(end.kind).toBe("done");
  expect(choices[0]).toMatchObject({ text: "x", finish: { reason: "stop" } });
  const empty = await read(chunk({ delta: { role: "assistant", content: "" } }) + announced);
  expect(empty.end).toMatchObject({ kind: "upstream-error", failure: { status: 502 } });
});

const stream =
  chunk({ delta: { role: "assistant", content: "" } }) +
  chunk({ delta: { content: "Grüße 🌍" } }) +
  chunk({ delta: { reasoning: "hm" } }, 1) +
  chunk({ delta: {}, finish_reason: "stop" }) +
  chunk({ delta: { content: "2" }, finish_reason: "stop" }, 1) +
  done;
const whole = await read(stream);

test("for every way of cutting the bytes, and every kind of source, the answer is the same", async () => {
  const bytes = new TextEncoder().encode(stream);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 20 }), async (cuts) => {
      const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const pieces = places.slice(1).map((to, i) => bytes.subarray(places[i], to));
      const body = ReadableStream.from<Uint8Array>(pieces);
      expect(await read(pieces)).toEqual(whole);
      expect(await read(body)).toEqual(whole);
    }),
    { numRuns: 50 },
  );
  expect(await read(new Response(stream))).toEqual(whole);
});

test("parsed chunks are read like their text", async () => {
  const chunks = stream
    .split("\n\n")
    .filter((frame) => frame.startsWith("data: {"))
    .map((frame) => JSON.parse(frame.slice(6)) as object);
  expect(await read(chunks)).toEqual(whole);
});

test("a response that is no 200 is a failure with its status", async () => {
  const error = { error: { message: "Slow down", kind: "overloaded", param: null, code: "rate_limit_exceeded" } };
  const { end } = await read(Response.json(error, { status: 429 }));
  expect(end).toMatchObject({ failure: { message: "Slow down", status: 429, code: "rate_limit_exceeded" } });
  expect((await read(new Response("<h1>Bad gateway</h1>", { status: 502 }))).end).toMatchObject({
    failure: { status: 502 },
  });
});

test("a source that breaks off, with or without an exception, is truncated, and what came is kept", async () => {
  const broken = async function* (): AsyncGenerator<string> {
    yield chunk({ delta: { content: "Hi" } });
    throw new Error("reset");
  };
  const { choices, end } = await read(broken());
  expect(choices[0]?.text).toBe("Hi");
  expect(end).toMatchObject({ kind: "truncated", failure: { message: expect.stringContaining("reset") } });
  expect((await read(chunk({ delta: { content: "Hi" } }))).end.kind).toBe("truncated");
});

test("leaving the loop cancels the source", async () => {
  let cancelled = false;
  const body = new ReadableStream<string>({
    pull: (controller) => controller.enqueue(chunk({ delta: { content: "x" } })),
    cancel: () => {
      cancelled = true;
    },
  });
  for await (const event of readChatStream(body)) if (event.type === "text-delta") break;
  expect(cancelled).toBe(true);
});

test("what was mended is told once", async () => {
  const told: string[][] = [];
  const onRepairs = (repairs: readonly { readonly id: string }[]): void => void told.push(repairs.map(({ id }) => id));
  const events: GenerationEvent[] = [];
  for await (const event of readChatStream('{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}\n', {
    onRepairs,
  })) {
    events.push(event);
  }
  expect(accumulate(events).choices[0]?.text).toBe("x");
  expect(told).toHaveLength(1);
  expect(told[0]).toContain("bare-json");
});

test("a whole answer is read from its text and from its object alike", () => {
  const body = { choices: [{ message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }], usage: null };
  expect(readChatAnswer(body)).toEqual(readChatAnswer(JSON.stringify(body)));
  expect(readChatAnswer(body).choices[0]?.text).toBe("Hi");
  expect(readChatAnswer("").end).toMatchObject({ kind: "upstream-error" });
});
