import { expect, test } from "vitest";
import { growthOf, maxGrowth } from "../../../test/support/growth.ts";
import { cachedTokens, promptTokensOf } from "./prompt-cache.ts";

const text = (characters: number): string => "x".repeat(characters);
const user = (content: unknown): object => ({ role: "user", content });
const mark = { cache_control: { type: "ephemeral" } };

test("OpenAI reads a prompt of 1,024 tokens or more from its cache, in steps of 128, and by its key", () => {
  const earlier = { messages: [user(text(6000))] };
  const later = { messages: [...earlier.messages, user("more")] };
  expect(cachedTokens("chat", earlier, later)).toBe(1408);
  expect(cachedTokens("chat", { messages: [user(text(4000))] }, { messages: [user(text(4000))] })).toBe(0);
  expect(cachedTokens("chat", earlier, { ...later, prompt_cache_key: "other" })).toBe(0);
  expect(cachedTokens("chat", earlier, { ...later, tools: [{ type: "function" }] })).toBe(0);
});

test("Anthropic reads only what ends with a mark, from 20 blocks before a mark", () => {
  const system = [{ type: "text", text: text(6000), ...mark }];
  const turns = (count: number): object[] => Array.from({ length: count }, (_, at) => user(`Turn ${at}`));
  const whole = promptTokensOf({ system });
  const marked = { system, messages: turns(1) };
  expect(cachedTokens("messages", marked, { system, messages: turns(30) })).toBe(whole);
  expect(cachedTokens("messages", { system: text(6000) }, { system: text(6000) })).toBe(0);
  const automatic = (count: number): Record<string, unknown> => ({
    system: text(6000),
    messages: turns(count),
    ...mark,
  });
  expect(cachedTokens("messages", automatic(1), automatic(20))).toBe(promptTokensOf(automatic(1)));
  expect(cachedTokens("messages", automatic(1), automatic(22))).toBe(0);
  const short = { system: [{ type: "text", text: text(400), ...mark }] };
  expect(cachedTokens("messages", short, short)).toBe(0);
});

test("the tokens are counted in linear time", () => {
  const growth = growthOf((size) => {
    const body = {
      messages: Array.from({ length: size }, (_, at) => user([{ type: "text", text: `${at}`, ...mark }])),
    };
    return () => cachedTokens("messages", body, body);
  });
  expect(growth).toBeLessThan(maxGrowth);
});
