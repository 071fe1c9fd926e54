import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { GenerationEvent } from "../../../wire/core/events.ts";
import { Departure } from "../exchange.ts";
import { RequestRecord } from "../request-record.ts";
import { runGeneration } from "../run-generation.ts";
import { tokensToReserve, UsageLease } from "./usage-lease.ts";

type Batch = readonly GenerationEvent[];
const done: GenerationEvent = { type: "end", end: { kind: "done" } };
const failure = { kind: "bad-answer", message: "It broke.", status: 502 } as const;
const broken: GenerationEvent = { type: "end", end: { kind: "upstream-error", failure } };
const text = (length: number): GenerationEvent => ({ type: "text-delta", choice: 0, text: "x".repeat(length) });
const usage = (promptTokens: number, completionTokens: number, totalTokens?: number): GenerationEvent => ({
  type: "usage",
  usage: { promptTokens, completionTokens, ...(totalTokens !== undefined && { totalTokens }) },
});

/** The lease of a request whose engine was asked, and what sees its answer. */
function leased(ended: number[]): { lease: UsageLease; observers: ((events: Batch) => Batch | void)[] } {
  const record = new RequestRecord();
  record.asked.estimate = 10;
  record.answer.begins();
  const lease = new UsageLease({ levels: {}, end: (tokens) => void ended.push(tokens) }, record, true);
  return { lease, observers: [(events) => record.answer.see(events), (events) => lease.observe(events)] };
}

/** What a request costs whose engine emits these batches, of which `taken` are pulled before the client leaves. An Error is thrown. */
async function cost(batches: readonly (Batch | Error)[], taken: number): Promise<number[]> {
  const ended: number[] = [];
  const { lease, observers } = leased(ended);
  async function* start(): AsyncGenerator<Batch> {
    for (const batch of batches) {
      if (batch instanceof Error) throw batch;
      yield batch;
    }
  }
  const departure = new Departure();
  let left = taken;
  if (left === 0) departure.happen();
  await runGeneration({ start, observers }, departure, () => {
    if (--left === 0) departure.happen();
    return undefined;
  });
  lease.end();
  return ended;
}

describe("a lease costs", () => {
  test.each<[string, readonly (Batch | Error)[], number]>([
    ["what the source reported last", [[usage(7, 0)], [text(400)], [usage(7, 90), done]], 97],
    ["the total, if the source reports one of its own", [[text(4), usage(7, 90, 100), done]], 100],
    [
      "by the text, if it is longer than what the source has reported of an answer that broke off",
      [[usage(7, 1)], [text(400)], new Error("x")],
      107,
    ],
    ["by the text, if the source reported the prompt alone", [[usage(7, 0)], [text(400), done]], 107],
    ["by the estimate and the text, if it reported nothing", [[text(400), done]], 110],
    ["nothing, if it failed before any text", [[broken]], 0],
    ["the text, if it failed after it", [[text(400)], [broken]], 110],
    ["the same if the engine throws", [[text(400)], new Error("x")], 110],
  ])("%s", async (_, batches, tokens) => {
    expect((await cost(batches, 10))[0]).toBe(tokens);
  });

  test("what was taken for it, if the client leaves at once", async () => {
    expect((await cost([[text(4), done]], 0))[0]).toBe(10);
  });
});

test("a lease ends before its end is written, and in every case", async () => {
  const batch = fc.oneof(
    fc.constant<Batch | Error>([text(4)]),
    fc.constant<Batch | Error>([text(4), usage(1, 1), done]),
    fc.constant<Batch | Error>([broken]),
    fc.constant<Batch | Error>(new Error("x")),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { maxLength: 6 }), fc.nat(8), async (batches, taken) => {
      expect((await cost(batches, taken)).length).toBeGreaterThan(0);
    }),
  );
  const ended: number[] = [];
  for (const observe of leased(ended).observers) observe([text(4), done]);
  expect(ended).toEqual([11]);
});

test("the rates that a source grants the server are not the client's", () => {
  const lease = new UsageLease({ levels: {}, end: () => {} }, new RequestRecord(), true);
  const start: GenerationEvent = {
    type: "start",
    choice: 0,
    source: { headers: { "x-ratelimit-limit-requests": "5", "x-truewire-warning": "w" } },
  };
  expect(lease.observe([start, done])).toEqual([
    { type: "start", choice: 0, source: { headers: { "x-truewire-warning": "w" } } },
    done,
  ]);
});

test("an answer reserves what its client allows, for each choice; else a standard that leaves a small limit usable", () => {
  const one = { prompt: { kind: "chat", messages: [], template: {} }, limits: {} } as const;
  const limited = { ...one, limits: { maxTokens: 400 } };
  const texts = { kind: "text", prompts: ["a", "b"], bestOf: 3 } as const;
  expect(tokensToReserve(limited, { tokensPerDay: 10 })).toBe(400);
  expect(tokensToReserve({ ...limited, n: 3 }, { tokensPerMinute: 10 })).toBe(1200);
  expect(tokensToReserve({ ...limited, prompt: texts }, { tokensPerDay: 10 })).toBe(2400);
  expect(tokensToReserve(one, { tokensPerDay: 1e6 })).toBe(1000);
  expect(tokensToReserve(one, { tokensPerDay: 1e6, tokensPerMinute: 555 })).toBe(56);
  expect(tokensToReserve(one, { tokensPerDay: 1e6, answerTokens: 5000 })).toBe(5000);
  expect(tokensToReserve(limited, { requestsPerMinute: 5 })).toBe(0);
});
