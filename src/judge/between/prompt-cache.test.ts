import { expect, test } from "vitest";
import { growthOf, maxGrowth } from "../../../test/support/growth.ts";
import type { Api, Json } from "./facts.ts";
import { cachedTokens, judgeCache, PromptCache, promptTokensOf } from "./prompt-cache.ts";

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

const minute = 60_000;

/** The minutes, of those in `at`, at which the prompt of the first request is read. */
function readAt(api: Api, body: Json, at: readonly number[]): number[] {
  const cache = new PromptCache(api);
  cache.charge(body, 0);
  return at.filter((minutes) => cache.charge(body, minutes * minute).read > 0);
}

test("Anthropic keeps a prompt for 5 minutes or an hour since its last use, as its mark says", () => {
  const system = (ttl?: string): Json => ({
    system: [{ type: "text", text: text(6000), cache_control: { type: "ephemeral", ...(ttl && { ttl }) } }],
    messages: [user("Hi")],
  });
  expect(readAt("messages", system(), [4, 8, 12])).toEqual([4, 8, 12]);
  expect(readAt("messages", system(), [6])).toEqual([]);
  expect(readAt("messages", system("1h"), [59, 118])).toEqual([59, 118]);
  expect(readAt("messages", system("1h"), [61])).toEqual([]);
  const { total, written } = new PromptCache("messages").charge(system("1h"), 0);
  expect(written).toEqual({ hour: promptTokensOf({ system: system("1h")["system"] }), short: 0 });
  expect(total).toBeGreaterThan(written.hour);
});

test("OpenAI keeps a prompt for 30 minutes, or as the request says; in memory for an hour at most", () => {
  const asked = (more: Json): Json => ({ messages: [user(text(6000))], ...more });
  expect(readAt("chat", asked({}), [29, 58])).toEqual([29, 58]);
  expect(readAt("chat", asked({}), [31])).toEqual([]);
  expect(readAt("responses", asked({ prompt_cache_options: { ttl: "12h" } }), [719])).toEqual([719]);
  expect(readAt("responses", asked({ prompt_cache_retention: "24h" }), [1439, 2900])).toEqual([1439]);
  const every4 = Array.from({ length: 17 }, (_, at) => 4 * (at + 1));
  const inMemory = readAt("chat", asked({ prompt_cache_retention: "in_memory" }), every4);
  expect(inMemory).toEqual(every4.filter((minutes) => minutes !== 64));
  expect(readAt("chat", asked({ prompt_cache_retention: "in_memory" }), [6])).toEqual([]);
});

test("with explicit marks, OpenAI reads only what ends with one", () => {
  const part = { type: "text", text: text(6000) };
  const explicit = { prompt_cache_options: { mode: "explicit" } };
  const marked = { ...part, prompt_cache_breakpoint: { mode: "explicit", ttl: "12h" } };
  expect(readAt("chat", { messages: [user([part])], ...explicit }, [1])).toEqual([]);
  expect(readAt("chat", { messages: [user([marked])], ...explicit }, [1, 700])).toEqual([1, 700]);
});

test("Ollama has a prompt until it unloads the model", () => {
  const asked = (keepAlive?: unknown): Json => ({ messages: [user("Hi there")], keep_alive: keepAlive });
  expect(readAt("ollama", asked(), [4, 10])).toEqual([4]);
  expect(readAt("ollama", asked("1h"), [59])).toEqual([59]);
  expect(readAt("ollama", asked(-1), [5000])).toEqual([5000]);
  expect(readAt("ollama", asked(0), [1])).toEqual([]);
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

// A gateway that writes some characters less made a step of 128 tokens of them, which was reported as a loss.
test("one step of OpenAI's cache is no loss, and a prompt that begins in another way is", () => {
  const turns = (first: string): Json => ({ messages: [user(first)] });
  const more = (first: string): Json => ({ messages: [user(first), user("more")] });
  const seen = (body: Json) => ({ api: "chat" as const, body, text: "" });
  const judged = (earlier: string, later: string) =>
    judgeCache(
      seen(turns(earlier)),
      seen(more(later)),
      { input: 3, cached: 0.3 },
      {
        api: "chat",
        earlier: turns(text(8172)),
        later: more(text(8172)),
      },
    );
  expect(cachedTokens("chat", turns(text(8172)), more(text(8172)))).toBe(2048);
  expect(cachedTokens("chat", turns(text(8100)), more(text(8100)))).toBe(1920);
  expect(judged(text(8100), text(8100))).toEqual([]);
  expect(judged(text(8172), `y${text(8171)}`)).toMatchObject([{ kind: "cache-lost", path: "prompt" }]);
});

test("of another API, only a prompt that grows is one that the vendor could have", () => {
  const body = (first: string): Json => ({ messages: [user(first), user("more")] });
  const seen = (first: string) => ({ api: "chat" as const, body: body(first), text: "" });
  const judged = (later: Json) =>
    judgeCache(
      seen(text(8000)),
      seen(`y${text(7999)}`),
      { input: 3, cached: 0.3 },
      {
        api: "messages",
        earlier: { system: "A rule.", ...body("a") },
        later,
      },
    );
  expect(judged({ system: "A rule.", ...body("a") })).toHaveLength(1);
  expect(judged({ system: "Another rule.", ...body("a") })).toEqual([]);
});
