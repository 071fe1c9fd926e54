import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Usage } from "../../core/events.ts";
import { chatReader } from "../chat/read.ts";
import { readUsage } from "./read-usage.ts";
import { RepairLog } from "./repairs.ts";

type Members = Readonly<Record<string, unknown>>;
const counts = { prompt_tokens: 1000, completion_tokens: 5, total_tokens: 1005 };
const read = (usage: unknown, timings?: unknown): Usage | null => readUsage(usage, new RepairLog(), timings);

/**
 * Clients were told of 0 cached tokens, or of none, by most servers: our tests had OpenAI's name only. The names are those of DeepSeek,
 * Kimi, llama.cpp, and LiteLLM with Anthropic's.
 */
const names: [string, Members, Members?][] = [
  ["OpenAI's details", { ...counts, prompt_tokens_details: { cached_tokens: 900 } }],
  ["prompt_cache_hit_tokens", { ...counts, prompt_cache_hit_tokens: 900, prompt_cache_miss_tokens: 100 }],
  ["cached_tokens in the usage itself", { ...counts, cached_tokens: 900 }],
  ["cache_n of the timings", counts, { cache_n: 900, prompt_n: 100 }],
  ["cache_read_input_tokens", { ...counts, cache_read_input_tokens: 900, cache_creation_input_tokens: 0 }],
  [
    "Anthropic's counts alone",
    { input_tokens: 100, output_tokens: 5, cache_read_input_tokens: 900, cache_creation_input_tokens: 0 },
  ],
  [
    "a gateway's zeros beside the vendor's count",
    { ...counts, prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 }, prompt_cache_hit_tokens: 900 },
  ],
];

describe("cached tokens have one name for clients", () => {
  test.each(names)("%s", (_, usage, timings) => {
    expect(read(usage, timings)).toMatchObject({ promptTokens: 1000, completionTokens: 5 });
    expect(read(usage, timings)?.promptDetails?.["cached_tokens"]).toBe(900);
  });

  test.each(names)("%s, in a stream", (_, usage, timings) => {
    const envelope = { id: "c", object: "chat.completion.chunk", created: 1700000000, model: "m" };
    const chunks = [
      { ...envelope, choices: [{ index: 0, delta: { role: "assistant", content: "Six." }, finish_reason: null }] },
      { ...envelope, choices: [{ index: 0, delta: {}, finish_reason: "stop" }], ...(timings && { timings }) },
      { ...envelope, choices: [], usage },
    ];
    const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("") + "data: [DONE]\n\n";
    const reader = chatReader({ newCallId: () => "call" });
    const event = [...reader.push(body), ...reader.end()].find(({ type }) => type === "usage");
    expect(event).toMatchObject({ usage: { promptTokens: 1000, promptDetails: { cached_tokens: 900 } } });
  });

  test("what a server does not count stays unknown", () => {
    for (const usage of [counts, { ...counts, prompt_tokens_details: null }, { ...counts, cached_tokens: null }])
      expect(read(usage, { prompt_n: 1000 })).toEqual({ promptTokens: 1000, completionTokens: 5 });
    expect(read({ ...counts, prompt_tokens_details: { cached_tokens: null } })?.promptDetails).toEqual({});
  });

  test("tokens written to the cache", () => {
    const usage = { ...counts, cache_read_input_tokens: 0, cache_creation_input_tokens: 900 };
    expect(read(usage)).toMatchObject({
      promptTokens: 1000,
      promptDetails: { cached_tokens: 0, cache_write_tokens: 900 },
    });
    // These tokens cannot be part of the prompt's.
    expect(read({ ...usage, prompt_tokens: 100 })?.promptTokens).toBe(1000);
  });

  test("never more than one source counts: the highest of all names", () => {
    const count = fc.option(fc.nat(1000), { nil: undefined });
    fc.assert(
      fc.property(count, count, count, count, count, (details, hits, top, own, timed) => {
        const usage = {
          prompt_tokens: 5000,
          completion_tokens: 1,
          prompt_tokens_details: { cached_tokens: details },
          prompt_cache_hit_tokens: hits,
          cached_tokens: top,
          cache_read_input_tokens: own,
        };
        const known = [details, hits, top, own, timed].filter((one) => one !== undefined);
        const found = read(usage, { cache_n: timed });
        expect(found?.promptDetails?.["cached_tokens"]).toBe(known.length === 0 ? undefined : Math.max(...known));
        expect(found?.promptTokens).toBe(5000);
      }),
    );
  });
});

describe("reasoning_tokens in the usage itself", () => {
  test("are a detail of the completion", () => {
    expect(read({ ...counts, reasoning_tokens: 3 })?.completionDetails).toEqual({ reasoning_tokens: 3 });
    const both = { ...counts, completion_tokens_details: { reasoning_tokens: 4 }, reasoning_tokens: 4 };
    expect(read(both)?.completionDetails).toEqual({ reasoning_tokens: 4 });
  });

  test("are left out if the completion does not contain them", () => {
    expect(read({ ...counts, reasoning_tokens: 700 })?.completionDetails).toBeUndefined();
  });
});
