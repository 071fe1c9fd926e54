import { hasRecordings, type Recording, readRecordings } from "../../../test/support/recordings.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { accumulate } from "../../wire/core/accumulate.ts";
import type { Generation } from "../../wire/core/accumulate.ts";
import type { GenerationEvent } from "../../wire/core/events.ts";
import { FailureError } from "../../wire/core/failure.ts";
import { isObject } from "../../wire/core/json.ts";
import {
  accumulateStream,
  readChatAnswer,
  readChatStream,
  readMessagesAnswer,
  readMessagesStream,
  readResponsesAnswer,
  readResponsesStream,
} from "./read-stream.ts";
import {
  writeChatAnswer,
  writeChatChunks,
  writeChatStream,
  writeMessagesAnswer,
  writeMessagesEvents,
  writeMessagesStream,
  writeResponsesAnswer,
  writeResponsesEvents,
  writeResponsesStream,
} from "./write-stream.ts";

const apis = [
  {
    api: "chat",
    readStream: readChatStream,
    readAnswer: readChatAnswer,
    writeStream: writeChatStream,
    writeEvents: writeChatChunks,
    writeAnswer: writeChatAnswer,
    error: /data: \{"error":\{/,
  },
  {
    api: "responses",
    readStream: readResponsesStream,
    readAnswer: readResponsesAnswer,
    writeStream: writeResponsesStream,
    writeEvents: writeResponsesEvents,
    writeAnswer: writeResponsesAnswer,
    error: /event: response\.failed\n/,
  },
  {
    api: "messages",
    readStream: readMessagesStream,
    readAnswer: readMessagesAnswer,
    writeStream: writeMessagesStream,
    writeEvents: writeMessagesEvents,
    writeAnswer: writeMessagesAnswer,
    error: /event: error\ndata: \{"type":"error"/,
  },
] as const;

const options = { model: "m", created: 1_760_000_000, random: () => 0.5, includeUsage: true, includeReasoning: true };
const events: GenerationEvent[] = [
  { type: "start", choice: 0 },
  { type: "reasoning-delta", choice: 0, text: "Hm" },
  { type: "text-delta", choice: 0, text: "Grüße 🌍" },
  { type: "tool-call-start", choice: 0, index: 0, id: "call_1", name: "f" },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: '{"a"' },
  { type: "tool-call-delta", choice: 0, index: 0, arguments: ":0}" },
  { type: "tool-call-end", choice: 0, index: 0, status: "succeeded" },
  { type: "finish", choice: 0, reason: "tool-calls" },
  { type: "usage", usage: { promptTokens: 3, completionTokens: 4, totalTokens: 7 } },
  { type: "end", end: { kind: "done" } },
];

/** The members of an answer that every API has. The prefix of a call's id is the API's. */
function shared({ choices, usage, end }: Generation) {
  const [choice] = choices;
  return {
    text: choice?.text,
    reasoning: choice?.reasoning,
    calls: choice?.toolCalls.map(({ name, arguments: text, status }) => ({ name, text, status })),
    finish: choice?.finish?.reason,
    usage: [usage?.promptTokens, usage?.completionTokens],
    end: end.kind,
  };
}

async function joined(parts: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const part of parts) text += part;
  return text;
}

describe.each(apis)("$api", ({ readStream, readAnswer, writeStream, writeEvents, writeAnswer, error }) => {
  const expected = shared(accumulate(events));

  test.each(["lean", "exact"] as const)("%s: events that are written are read back the same", async (wire) => {
    const text = await joined(writeStream(events, { ...options, wire }));
    expect(shared(await accumulateStream(readStream(text)))).toEqual(expected);
    const body = writeAnswer(accumulate(events), { ...options, wire });
    expect(shared(readAnswer(body))).toEqual(expected);
    expect(shared(readAnswer(JSON.parse(body) as object))).toEqual(expected);
  });

  test("parsed events are those of the text, and are read like it without a repair", async () => {
    const text = await joined(writeStream(events, options));
    const frames = [...text.matchAll(/^data: (\{.*\})$/gm)].map(([, json = ""]) => JSON.parse(json) as object);
    const parsed: object[] = [];
    for await (const event of writeEvents(events, options)) parsed.push(event);
    expect(parsed).toEqual(frames.filter((frame) => !("type" in frame) || frame.type !== "ping"));
    const repairs: unknown[] = [];
    const onRepairs = (made: readonly unknown[]): void => void repairs.push(...made);
    expect(shared(await accumulateStream(readStream(parsed, { onRepairs })))).toEqual(expected);
    // `[DONE]` is no event, so its absence is not a repair of the events' reader either.
    expect(repairs.map((made) => (made as { readonly id: string }).id)).toEqual(
      parsed.some((event) => "choices" in event) ? ["no-done"] : [],
    );
  });

  test("for every way of cutting the bytes the answer is the same", async () => {
    const bytes = new TextEncoder().encode(await joined(writeStream(events, options)));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 20 }), async (cuts) => {
        const places = [0, ...cuts.sort((a, b) => a - b), bytes.length];
        const parts = places.slice(1).map((to, i) => bytes.subarray(places[i], to));
        expect(shared(await accumulateStream(readStream(ReadableStream.from<Uint8Array>(parts))))).toEqual(expected);
      }),
      { numRuns: 30 },
    );
  });

  test("a source that throws or stops ends in the API's error, without its cause; parsed events throw it", async () => {
    const failing = async function* (): AsyncGenerator<GenerationEvent> {
      yield* events.slice(0, 3);
      throw new Error("secret path");
    };
    const text = await joined(writeStream(failing(), options));
    expect(text).toMatch(error);
    expect(text).not.toContain("secret");
    expect(await joined(writeStream(events.slice(0, 3), options))).toMatch(error);
    const { end } = await accumulateStream(readStream(text));
    expect(end.kind).toBe("upstream-error");
    const seen: object[] = [];
    const all = (async () => {
      for await (const event of writeEvents(failing(), options)) seen.push(event);
    })();
    await expect(all).rejects.toThrow(FailureError);
    expect(seen.length).toBeGreaterThan(2);
    expect(seen.every((event) => !("type" in event) || event.type !== "error")).toBe(true);
    expect(() => writeAnswer(accumulate(events.slice(0, 3)), options)).toThrow(FailureError);
  });

  test("a response that is not a 200 is a failure with its status", async () => {
    const body = { type: "error", error: { type: "rate_limit_error", message: "Slow down" } };
    const { end } = await accumulateStream(readStream(Response.json(body, { status: 429 })));
    expect(end).toMatchObject({ failure: { status: 429, message: "Slow down" } });
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
    const parts = writeStream(endless(), options);
    for (let taken = 0; taken < 3; taken++) await parts.next();
    expect(asked).toBeLessThan(5);
    await parts.return(undefined);
  });
});

test("an id, and what a response repeats of its request", () => {
  const request = {
    instructions: "Be brief.",
    temperature: 0.5,
    reasoning: { summary: "auto" },
    include: ["reasoning.encrypted_content"],
    tools: [{ type: "function", name: "f", parameters: {} }],
  };
  const written = JSON.parse(writeResponsesAnswer(accumulate(events), { ...options, id: "resp_own", request })) as {
    readonly output: readonly object[];
  };
  expect(written).toMatchObject({
    id: "resp_own",
    instructions: "Be brief.",
    temperature: 0.5,
    tools: [{ name: "f" }],
  });
  expect(written.output[0]).toMatchObject({
    type: "reasoning",
    summary: [{ type: "summary_text", text: "Hm" }],
    encrypted_content: expect.any(String) as string,
  });
  expect(JSON.parse(writeMessagesAnswer(accumulate(events), { ...options, id: "msg_own" }))).toMatchObject({
    id: "msg_own",
  });
  const hidden = JSON.parse(writeMessagesAnswer(accumulate(events), { ...options, reasoning: "hidden" })) as {
    readonly content: readonly { readonly type: string }[];
  };
  expect(hidden.content.map(({ type }) => type)).toEqual(["text", "tool_use"]);
});

function recorded(kind: string): readonly Recording[] {
  return readRecordings(kind).filter(({ status }) => status === 200);
}

/** The parts of an answer, without what the reader of a rewritten answer cannot know: the ids that a writer makes. */
function parts({ choices, usage, end }: Generation) {
  const [choice] = choices;
  return {
    parts: choice?.parts.map((part) =>
      part.type === "tool-call"
        ? { name: part.name, id: part.id, arguments: part.arguments }
        : part.type === "text"
          ? { text: part.text }
          : { type: part.type },
    ),
    finish: choice?.finish?.reason,
    usage: [usage?.promptTokens, usage?.completionTokens],
    end: end.kind,
  };
}

describe.skipIf(!hasRecordings("to read and write"))("recordings", () => {
  test.each([apis[1], apis[2]])("$api: streams and bodies are read, written and read again the same", async (own) => {
    const streams = recorded(`${own.api}-stream`);
    for (const { name, body, model, request } of streams) {
      const read = await accumulateStream(own.readStream(body));
      const more = { model: model ?? "m", ...(isObject(request) && { request }) };
      const text = await joined(own.writeStream(own.readStream(body), more));
      expect(parts(await accumulateStream(own.readStream(text))), name).toEqual(parts(read));
    }
    expect(streams.length).toBeGreaterThan(100);
    for (const { name, body, model, request } of recorded(own.api)) {
      const read = own.readAnswer(body);
      if ("failure" in read.end) continue;
      const more = { model: model ?? "m", ...(isObject(request) && { request }) };
      expect(parts(own.readAnswer(own.writeAnswer(read, more))), name).toEqual(parts(read));
    }
  });
});
