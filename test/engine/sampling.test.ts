import { afterAll, beforeAll, expect, test } from "vitest";
import { openProgrammed, type TestEngine } from "./local-engine.ts";

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed({ slots: 8 });
});
afterAll(() => local.close());

const coin = (over: Parameters<TestEngine["ask"]>[0]) =>
  local.complete("<|script:coin|>", { limits: { maxTokens: 40 }, ...over });

test.each([
  ["native", {}],
  ["raw", { logprobs: { top: 0 } }],
])("the same seed gives the same answer, alone or beside others (%s)", async (_, over) => {
  const seeded = { ...over, sampling: { seed: 42 } };
  const alone = (await coin(seeded)).choices[0]?.text;
  expect(alone).toMatch(/^( heads| tails){40}$/);
  const crowd = Array.from({ length: 7 }, (_, i) => coin({ sampling: { seed: i }, limits: { maxTokens: 10 + 9 * i } }));
  const among = await coin(seeded);
  await Promise.all(crowd);
  expect(among.choices[0]?.text).toBe(alone);
  expect((await coin({ ...over, sampling: { seed: 43 } })).choices[0]?.text).not.toBe(alone);
});

test("seeds of any size are taken, and choices of one request differ", async () => {
  for (const seed of [0, -1, 2 ** 32 - 1, 2 ** 53 - 1, -(2 ** 53) + 1]) {
    const { choices } = await coin({ n: 2, sampling: { seed } });
    expect(choices).toHaveLength(2);
    expect(choices[0]?.text).not.toBe(choices[1]?.text);
    expect((await coin({ n: 2, sampling: { seed } })).choices.map((choice) => choice.text)).toEqual(
      choices.map((choice) => choice.text),
    );
  }
});

test("without a seed, answers differ", async () => {
  const answers = await Promise.all(Array.from({ length: 4 }, () => coin({ sampling: {} })));
  expect(new Set(answers.map(({ choices }) => choices[0]?.text)).size).toBe(4);
});

test("logit_bias bans and forces", async () => {
  const [red = 0, green = 0, blue = 0] = local.model.scriptTokens.odds ?? [];
  const ask = async (logitBias: Record<number, number>) =>
    (await local.complete("<|script:odds|>", { sampling: { temperature: 0, logitBias } })).choices[0]?.text;
  expect(await ask({ [red]: -100 })).toBe("green");
  expect(await ask({ [red]: -100, [green]: -100 })).toBe("blue");
  expect(await ask({ [blue]: 30 })).toBe("blue");
});

// A bias took token ids alone, which nobody knew.
test("a bias for a text is one for each of its tokens, and one for a token itself wins", async () => {
  const ask = async (sampling: object) =>
    (await local.complete("<|script:plain|>", { sampling: { temperature: 0, ...sampling }, limits: { maxTokens: 6 } }))
      .choices[0]?.text;
  const textBias = [{ text: "zq", bias: 100 }];
  expect(await ask({ textBias })).toMatch(/^[zq]{6}$/);
  // The bytes are the first tokens of the programmed vocabulary.
  expect(await ask({ textBias, logitBias: { ["z".charCodeAt(0)]: -100 } })).toBe("qqqqqq");
  expect(await ask({ textBias, logitBias: { ["q".charCodeAt(0)]: -100 } })).toBe("zzzzzz");
});

test("a bias against the end of the turn holds", async () => {
  const end = local.model.controlToken("<|im_end|>");
  const { choices } = await local.complete("<|script:plain|>", {
    sampling: { temperature: 0, logitBias: { [end]: -100 } },
    limits: { maxTokens: 20 },
  });
  // What comes in its place is arbitrary, but there are twenty tokens of it.
  expect(choices[0]?.finish?.reason).toBe("length");
});

test("ignore_eos and min_tokens keep a turn open", async () => {
  const ignored = await local.complete("<|script:plain|>", { limits: { maxTokens: 30, ignoreEos: true } });
  expect(ignored.choices[0]?.finish?.reason).toBe("length");
  expect(ignored.usage?.completionTokens).toBe(30);
  const least = await local.complete("<|script:plain|>", { limits: { maxTokens: 200, minTokens: 25 } });
  expect(least.usage?.completionTokens).toBeGreaterThanOrEqual(25);
  expect(least.choices[0]?.text).toMatch(/^The quick brown fox/);
});

test("stop_token_ids end a choice without showing the token", async () => {
  const fox = local.model.scriptTokens.plain?.[3] ?? 0;
  const { choices } = await local.complete("<|script:plain|>", { limits: { stopTokenIds: [fox] } });
  expect(choices[0]).toMatchObject({ text: "The quick brown", finish: { reason: "stop" } });
});

test.each([
  ["native", {}],
  ["raw", { logprobs: { top: 0 } }],
])("frequency and presence penalties count what was generated (%s)", async (_, over) => {
  // A fair coin thrown greedily always shows heads; every penalty for the last side makes it alternate.
  const sides = async (sampling: object): Promise<string | null | undefined> =>
    (await coin({ ...over, sampling: { temperature: 0, ...sampling }, limits: { maxTokens: 6 } })).choices[0]?.text;
  expect(await sides({})).toBe(" heads heads heads heads heads heads");
  expect(await sides({ frequencyPenalty: 1 })).toBe(" heads tails heads tails heads tails");
  expect(await sides({ presencePenalty: 1 })).toBe(" heads tails heads heads heads heads");
  expect(await sides({ frequencyPenalty: 1, repeatPenalty: 1.0001 })).toBe(" heads tails heads tails heads tails");
});

test("the repeat penalty looks at the prompt, too", async () => {
  const { choices } = await coin({
    prompt: { kind: "text", prompts: [(local.model.scriptTokens.coin ?? []).slice(0, 1)] },
    sampling: { temperature: 0, repeatPenalty: 1.5 },
    limits: { maxTokens: 1 },
  });
  expect(choices[0]?.text).toBe(" tails");
});

test("top_k 1, min_p and XTC do what they say", async () => {
  const ask = async (sampling: object) =>
    (await local.complete("<|script:odds|>", { n: 24, sampling: { seed: 5, ...sampling } })).choices.map(
      (choice) => choice.text,
    );
  expect(new Set(await ask({ topK: 1 }))).toEqual(new Set(["red"]));
  expect(new Set(await ask({ minP: 0.5 }))).toEqual(new Set(["red"]));
  expect(await ask({ xtc: { probability: 1, threshold: 0.15 } })).not.toContain("red");
});
