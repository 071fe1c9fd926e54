import { describe, expect, test } from "vitest";
import { ConfigError } from "./config-error.ts";
import { parsePriceList } from "./prices-schema.ts";
import { parseConfig } from "./schema.ts";

const messageOf = (work: () => unknown): string => {
  try {
    work();
    return "accepted";
  } catch (error) {
    return error instanceof ConfigError ? error.message : `another error: ${String(error)}`;
  }
};

describe("a price list in LiteLLM's form", () => {
  test("is read in dollars for a million tokens; what has no prices, and what is not known, is ignored", () => {
    const list = {
      sample_spec: { max_tokens: "LEGACY parameter", mode: "one of: chat, embedding" },
      "claude-sonnet": {
        input_cost_per_token: 3e-6,
        output_cost_per_token: "1.5e-05",
        cache_read_input_token_cost: 3e-7,
        cache_creation_input_token_cost: 3.75e-6,
        search_context_cost_per_query: { search_context_size_low: 0.01, search_context_size_medium: 0.02 },
        litellm_provider: "anthropic",
        supports_vision: true,
      },
      "text-embedding-3-small": { input_cost_per_token: 2e-8, output_cost_per_token: 0, input_cost_per_image: 1e-4 },
      "dall-e-3": { input_cost_per_pixel: 1e-8 },
      "a text": "x",
      __proto__: null,
    };
    const prices = parsePriceList(JSON.stringify(list), "prices.json");
    expect([...prices.keys()]).toEqual(["claude-sonnet", "text-embedding-3-small"]);
    expect(prices.get("claude-sonnet")).toEqual({
      input: 3,
      output: 15,
      cachedInput: 0.3,
      cacheWrite: 3.75,
      image: undefined,
      hostedCall: 0.02,
    });
    expect(prices.get("text-embedding-3-small")).toMatchObject({ input: 0.02, output: 0, image: 0.0001 });
  });

  test.each([
    ["[1", /^prices\.json: is no JSON: /],
    ["[]", /^prices\.json: expected an object such as /],
    [
      '{"m": {"input_cost_per_token": "cheap"}}',
      /^prices\.json: m\.input_cost_per_token: expected US dollars for one, such as 2\.5e-06$/,
    ],
    ['{"m": {"input_cost_per_token": -1}}', /m\.input_cost_per_token: expected/],
    ['{"m": {"input_cost_per_token": 1e400}}', /m\.input_cost_per_token: expected/],
    ['{"m": {"input_cost_per_token": 1, "output_cost_per_token": []}}', /m\.output_cost_per_token: expected/],
  ])("%s: an error names the place", (text, message) => {
    expect(messageOf(() => parsePriceList(text, "prices.json"))).toMatch(message);
  });

  test("a list of mistakes has twenty of them", () => {
    const wrong = Object.fromEntries(
      Array.from({ length: 5000 }, (_, at) => [`m${at}`, { input_cost_per_token: "x" }]),
    );
    expect(messageOf(() => parsePriceList(JSON.stringify(wrong), "p")).split("\n")).toHaveLength(20);
  });
});

test.each([
  [{ m: { input: 3 } }, "prices.m.output: is missing; expected a number from 0 to 1000000"],
  [{ m: { input: -1, output: 1 } }, "prices.m.input: expected a number from 0 to 1000000"],
  [{ m: { input: 1, output: 1, cached: 1 } }, "prices.m.cached: there is no such setting"],
  [
    { m: 3 },
    "prices.m: expected the name of an entry in pricesFile, free, or a mapping such as { input: 3, output: 15 }",
  ],
])("prices %j are refused", (prices, message) => {
  expect(messageOf(() => parseConfig({ prices } as never))).toContain(message);
});

test("keys may be managed where an admin key creates them", () => {
  expect(messageOf(() => parseConfig({ managedKeys: true }))).toBe(
    "managedKeys: needs an admin key (adminKey), which creates the keys",
  );
  expect(parseConfig({ managedKeys: true, adminKey: "a" }).managedKeys).toBe(true);
});
