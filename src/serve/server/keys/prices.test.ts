import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FailureError } from "../../../wire/core/failure.ts";
import type { ServedModel } from "../model-directory.ts";
import { costOf, costToReserve, imagesIn, noPrice, PriceList } from "./prices.ts";

const none = { images: 0, hostedCalls: 0 };
const sonnet = { input: 3, cachedInput: 0.3, cacheWrite: 3.75, output: 15, image: 0.004, hostedCall: 0.01 };
const named = (id: string, engineModel = id): ServedModel => ({ info: { id }, engineModel }) as unknown as ServedModel;

describe("the cost of a request", () => {
  test("has one price for each token of the prompt: read from a cache, written to one, or neither", () => {
    const usage = {
      promptTokens: 1000,
      completionTokens: 10,
      promptDetails: { cached_tokens: 700, cache_write_tokens: 200 },
    };
    // 100 × $3 + 700 × $0.30 + 200 × $3.75 + 10 × $15, for a million.
    expect(costOf(sonnet, usage, none) / 1e9).toBe(0.00141);
    expect(costOf(sonnet, usage, { images: 2, hostedCalls: 3 }) / 1e9).toBeCloseTo(0.03941, 9);
    expect(costOf({ input: 3, output: 15 }, usage, none) / 1e9).toBe(0.00315);
  });

  test("is never more than what was reserved for as many tokens, and a whole number", () => {
    const count = fc.nat(1e6);
    const price = fc.record({
      input: fc.nat(100),
      output: fc.nat(100),
      cachedInput: fc.option(fc.constant(0.1), { nil: undefined }),
      cacheWrite: fc.option(fc.nat(200), { nil: undefined }),
    });
    fc.assert(
      fc.property(price, count, count, count, count, (one, promptTokens, completionTokens, cached, written) => {
        const cheap = { ...one, cachedInput: Math.min(one.cachedInput ?? one.input, one.input) };
        const promptDetails = { cached_tokens: cached, cache_write_tokens: written };
        const cost = costOf(cheap, { promptTokens, completionTokens, promptDetails }, none);
        expect(Number.isSafeInteger(cost) && cost >= 0).toBe(true);
        expect(cost).toBeLessThanOrEqual(costToReserve(cheap, promptTokens, completionTokens, 0));
      }),
    );
  });

  test("counts the images of the prompt", () => {
    const image = { type: "image", url: "data:," } as never;
    const messages = [
      { role: "user", content: [{ type: "text", text: "What is this?" }, image, image] },
      { role: "assistant", content: "A cat." },
    ] as never;
    expect(imagesIn({ prompt: { kind: "chat", messages, template: {} } })).toBe(2);
    expect(imagesIn({ prompt: { kind: "text", prompts: ["a"] } as never })).toBe(0);
  });
});

test("a price is found by the client's name, then by a pattern, then in the file by the server's own name", () => {
  const own = { small: { input: 1, output: 2 }, "gpt-*": "openai/gpt", local: "free", lost: "not in the file" };
  const file = new Map([
    ["openai/gpt", { input: 5, output: 6 }],
    ["Qwen/Qwen3-8B", { input: 0.1, output: 0.2 }],
    ["gpt-4o", { input: 9, output: 9 }],
  ]);
  const prices = new PriceList(own, file, new Map([["chat", "Qwen/Qwen3-8B"]]));
  const found = ["small", "gpt-4o", "local", "chat", "lost", "other", "constructor"].map(
    (id) => prices.of(named(id))?.input,
  );
  expect(found).toEqual([1, 5, 0, 0.1, undefined, undefined, undefined]);
  // An alias has the price of its model.
  expect(prices.of(named("assistant", "small"))?.output).toBe(2);
});

test("a model without a price is refused with what to do", () => {
  const refused = noPrice("m", "the key 'alice' has a budget");
  expect(refused).toBeInstanceOf(FailureError);
  expect(refused.failure).toMatchObject({ status: 403, code: "model_without_price" });
  expect(refused.failure.message).toBe(
    "The model 'm' has no price, and the key 'alice' has a budget. Give it one in prices of the configuration, such as { input: 3, output: 15 }, or free.",
  );
});
