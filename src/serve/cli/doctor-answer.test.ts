import { expect, test } from "vitest";
import { answerOf } from "./doctor-answer.ts";

/** Doctor said "it does not report cached tokens" of servers that do: it knew OpenAI's name and llama.cpp's, and had no test of others. */
test.each<[string, object]>([
  ["OpenAI's details", { usage: { prompt_tokens: 1000, prompt_tokens_details: { cached_tokens: 900 } } }],
  ["DeepSeek's", { usage: { prompt_tokens: 1000, prompt_cache_hit_tokens: 900, prompt_cache_miss_tokens: 100 } }],
  ["Kimi's", { usage: { prompt_tokens: 1000, cached_tokens: 900 } }],
  ["Anthropic's", { usage: { input_tokens: 100, output_tokens: 1, cache_read_input_tokens: 900 } }],
  ["llama.cpp's timings", { usage: { prompt_tokens: 1000 }, timings: { cache_n: 900 } }],
])("doctor reads cached tokens under every name: %s", (_, members) => {
  const choices = [{ index: 0, message: { role: "assistant", content: "Six." }, finish_reason: "stop" }];
  const body = JSON.stringify({ object: "chat.completion", choices, ...members });
  const response = { status: 200, headers: { "content-type": "application/json" }, body };
  const result = { exchange: { response }, milliseconds: 1 } as unknown as Parameters<typeof answerOf>[0];
  expect(answerOf(result)).toMatchObject({ promptTokens: 1000, cachedTokens: 900, text: "Six." });
});
