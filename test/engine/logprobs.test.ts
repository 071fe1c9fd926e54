import { afterAll, beforeAll, expect, test } from "vitest";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import { openProgrammed, type TestEngine } from "./local-engine.ts";

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed({ slots: 8 });
});
afterAll(() => local.close());

const odds: Readonly<Record<string, number>> = { red: 0.7, green: 0.2, blue: 0.1 };

test("the programmed probabilities come back as logprobs", async () => {
  const { choices } = await local.chat("#odds", { logprobs: { top: 3 } });
  const [token, ...more] = choices[0]?.textLogprobs ?? [];
  expect(more).toEqual([]);
  expect(token?.token).toBe("red");
  expect(token?.bytes).toEqual([...Buffer.from("red")]);
  expect(Math.abs((token?.logprob ?? 0) - Math.log(0.7))).toBeLessThan(1e-3);
  expect(token?.top.map((rival) => rival.token)).toEqual(["red", "green", "blue"]);
  for (const { token: text, logprob } of token?.top ?? [])
    expect(Math.abs((logprob ?? 0) - Math.log(odds[text] ?? 0))).toBeLessThan(1e-3);
});

test("top_logprobs 0 gives the chosen token alone", async () => {
  const { choices } = await local.chat("#plain", { logprobs: { top: 0 } });
  expect(choices[0]?.textLogprobs?.map((token) => token.token).join("")).toBe(choices[0]?.text);
  expect(
    choices[0]?.textLogprobs?.every((token) => token.top.length === 0 && Math.abs(token.logprob ?? -1) < 1e-3),
  ).toBe(true);
});

test("whatever the sampler does, logprobs are those of the raw distribution", async () => {
  const sampling = { temperature: 0.3, topP: 0.9, topK: 2, frequencyPenalty: 1.5, logitBias: { 65: 5 }, seed: 1 };
  const { choices } = await local.chat("#odds", { logprobs: { top: 1 }, sampling });
  expect(Math.abs((choices[0]?.textLogprobs?.[0]?.top[0]?.logprob ?? 0) - Math.log(0.7))).toBeLessThan(1e-3);
});

test("tokens that hold parts of characters have their bytes, and their text is marked", async () => {
  const { choices } = await local.complete("<|script:unicode|>", { logprobs: { top: 0 } });
  const tokens = choices[0]?.textLogprobs ?? [];
  expect(Buffer.from(tokens.flatMap((token) => token.bytes ?? [])).toString()).toBe(choices[0]?.text);
  expect(tokens[0]?.token).toBe("Z\ufffd");
});

/** Pearson's statistic of the answers' counts against the expected shares. */
function chiSquare(answers: readonly string[], expected: Readonly<Record<string, number>>): number {
  return Object.entries(expected).reduce((sum, [text, share]) => {
    const count = answers.filter((answer) => answer === text).length;
    const mean = share * answers.length;
    return sum + (count - mean) ** 2 / mean;
  }, 0);
}

/** So many answers, 64 a request, each request with a seed of its own. */
async function draws(count: number, over: Parameters<TestEngine["ask"]>[0], seed: number): Promise<string[]> {
  const answers: Generation[] = [];
  for (let i = 0; i < count / 64; i++)
    answers.push(
      await local.complete("<|script:odds|>", { ...over, n: 64, sampling: { ...over.sampling, seed: seed + i } }),
    );
  return answers.flatMap(({ choices }) => choices.map((choice) => choice.text ?? ""));
}

/** 0.001 of the mass of the chi-square distribution with two degrees of freedom lies above. The seeds are fixed, so the tests are, too. */
const limit = 13.8;

test.each([
  ["llama.cpp's sampler", {}],
  ["our draw from raw logits", { logprobs: { top: 0 } }],
])("%s draws in the model's proportions, and in those of a temperature", async (_, over) => {
  const plain = await draws(512, { ...over, sampling: { temperature: 1 } }, 700);
  expect(chiSquare(plain, odds)).toBeLessThan(limit);
  const weights = Object.values(odds).map((p) => p ** 2);
  const total = weights.reduce((a, b) => a + b);
  const cold = await draws(512, { ...over, sampling: { temperature: 0.5 } }, 800);
  expect(
    chiSquare(cold, {
      red: (weights[0] ?? 0) / total,
      green: (weights[1] ?? 0) / total,
      blue: (weights[2] ?? 0) / total,
    }),
  ).toBeLessThan(limit);
  const two = await draws(512, { ...over, sampling: { temperature: 1, topP: 0.85 } }, 900);
  expect(two).not.toContain("blue");
  expect(chiSquare(two, { red: 7 / 9, green: 2 / 9 })).toBeLessThan(limit);
});

test("echo gives the prompt back, with its tokens' logprobs; the first has none", async () => {
  const { choices, usage } = await local.ask({
    prompt: { kind: "text", prompts: ["ab<|script:odds|>"], echo: true },
    logprobs: { top: 1 },
    limits: { maxTokens: 5 },
  });
  expect(choices[0]?.text).toBe("ab<|script:odds|>red");
  const tokens = choices[0]?.textLogprobs ?? [];
  expect(tokens.map((token) => token.token)).toEqual(["a", "b", "<|script:odds|>", "red"]);
  expect(tokens[0]?.logprob).toBeNull();
  // After a plain byte the model is sure of the greeting, and finds "b" impossible.
  expect(tokens[1]?.logprob).toBeCloseTo(-50, 3);
  expect(tokens[1]?.top[0]).toMatchObject({ token: "Hello!" });
  expect(usage).toMatchObject({ promptTokens: 3, promptDetails: { cached_tokens: 0 } });
});

test("echo without new tokens only reads the prompt", async () => {
  const before = local.counters().generatedTokens ?? 0;
  const { choices } = await local.ask({
    prompt: { kind: "text", prompts: ["abc"], echo: true },
    logprobs: { top: 0 },
    limits: { maxTokens: 0 },
  });
  expect(choices[0]).toMatchObject({ text: "abc", finish: { reason: "length" } });
  expect(choices[0]?.textLogprobs).toHaveLength(3);
  expect(local.counters().generatedTokens).toBe(before);
});

test("a prompt that is only given back needs no step at all", async () => {
  await local.idle();
  const before = local.counters().decodeSteps;
  const prompt = { kind: "text", prompts: ["Say it again.", "x"], echo: true } as const;
  const { choices, end } = await local.ask({ prompt, limits: { maxTokens: 0 } });
  expect(choices.map((choice) => choice.text)).toEqual(["Say it again.", "x"]);
  expect(end).toEqual({ kind: "done" });
  await local.idle();
  expect(local.counters().decodeSteps).toBe(before);
});

test("best_of returns the likeliest, numbered from 0, and counts all", async () => {
  const { choices, usage } = await local.ask({
    prompt: { kind: "text", prompts: ["<|script:odds|>"], bestOf: 16 },
    n: 2,
    sampling: { temperature: 1, seed: 3 },
    stream: false,
  });
  expect(choices.map((choice) => choice.choice)).toEqual([0, 1]);
  expect(choices.map((choice) => choice.text)).toEqual(["red", "red"]);
  expect(usage).toMatchObject({ promptTokens: 1, completionTokens: 32 });
});

test("logprobs beside DRY, which only llama.cpp's chain has", async () => {
  const { choices } = await local.chat("#plain", {
    logprobs: { top: 0 },
    sampling: { temperature: 0, dry: { multiplier: 0.8 } },
  });
  expect(choices[0]?.text).toBe("The quick brown fox jumps over the lazy dog.");
  expect(choices[0]?.textLogprobs).toHaveLength(9);
});
