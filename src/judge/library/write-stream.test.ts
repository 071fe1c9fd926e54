import { expect, test } from "vitest";
import { accumulateStream, readChatAnswer, readChatStream } from "./read-stream.ts";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { writeChatAnswer, writeChatChunks, writeChatStream } from "./write-stream.ts";
import type { WriteChatOptions } from "./write-stream.ts";

const options = { model: "m", id: "chatcmpl-1", created: 7, includeUsage: true, random: () => 0.5 } as const;
const events: GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "reasoning-delta", choice: 0, text: "Hm" },
  { type: "text-delta", choice: 0, text: "Hi", logprobs: [{ token: "Hi", logprob: -0.5, bytes: [72, 105], top: [] }] },
  { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"a"' },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: ":0}" },
  { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  { type: "finish", choice: 0, reason: "tool-calls" },
  { type: "usage", usage: { promptTokens: 3, completionTokens: 4, totalTokens: 7 } },
  { type: "end", end: { kind: "done" } },
];

async function textOf(
  source: Parameters<typeof writeChatStream>[0],
  more?: Partial<WriteChatOptions>,
): Promise<string> {
  let text = "";
  for await (const piece of writeChatStream(source, { ...options, ...more })) text += piece;
  return text;
}

test.each(["lean", "exact", "openai"] as const)(
  "events written in profile %s are read back the same, streamed and whole",
  async (wire) => {
    const expected = accumulate(events);
    const more = { wire, includeReasoning: true };
    const streamed = await accumulateStream(readChatStream(await textOf(events, more)));
    expect(streamed.choices).toEqual(expected.choices);
    expect(streamed.usage).toMatchObject({ promptTokens: 3, completionTokens: 4 });
    expect(streamed.end).toEqual({ kind: "done" });
    const whole = readChatAnswer(writeChatAnswer(expected, { ...options, ...more }));
    expect(whole.choices).toEqual(expected.choices);
  },
);

test("openai is the older name of exact", async () => {
  const exact = await textOf(events, { wire: "exact", random: () => 0.5 });
  expect(await textOf(events, { wire: "openai", random: () => 0.5 })).toBe(exact);
  expect(await textOf(events, { wire: "lean", random: () => 0.5 })).not.toBe(exact);
});

test("one event at a time, in batches, or from an iterator that waits: the same bytes", async () => {
  const waiting = async function* (): AsyncGenerator<GenerationEvent> {
    for (const event of events) yield await Promise.resolve(event);
  };
  const text = await textOf(events);
  expect(await textOf([events])).toBe(text);
  expect(await textOf(waiting())).toBe(text);
  expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
});

test("chunks are the stream's, parsed", async () => {
  const frames = (await textOf(events)).split("\n\n").filter((frame) => frame.startsWith("data: {"));
  const chunks: unknown[] = [];
  for await (const chunk of writeChatChunks(events, options)) chunks.push(chunk);
  expect(chunks).toEqual(frames.map((frame) => JSON.parse(frame.slice(6)) as unknown));
});

test("a source that throws, fails or just stops ends in an error and [DONE]; chunks throw it", async () => {
  const failing = async function* (): AsyncGenerator<GenerationEvent> {
    yield* events.slice(0, 3);
    throw new Error("secret path");
  };
  const text = await textOf(failing());
  expect(text).toMatch(/data: \{"error":\{.*"type":"server_error".*\}\}\n\ndata: \[DONE\]\n\n$/);
  expect(text).not.toContain("secret");
  expect(await textOf(events.slice(0, 3))).toMatch(/data: \{"error":.*\n\ndata: \[DONE\]\n\n$/);
  const seen: unknown[] = [];
  const all = (async () => {
    for await (const chunk of writeChatChunks(failing(), options)) seen.push(chunk);
  })();
  await expect(all).rejects.toThrow(FailureError);
  expect(seen).toHaveLength(3);
});

test("a generation that failed has no answer", () => {
  expect(() => writeChatAnswer(accumulate(events.slice(0, 3)), options)).toThrow(FailureError);
});

test("the source is read no faster than the text is taken", async () => {
  let asked = 0;
  const endless = function* (): Generator<GenerationEvent> {
    yield { type: "start", choice: 0 };
    for (;;) {
      asked++;
      yield { type: "text-delta", choice: 0, text: "x" };
    }
  };
  const pieces = writeChatStream(endless(), options);
  await pieces.next();
  await pieces.next();
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked).toBeLessThan(4);
  await pieces.return(undefined);
});
