import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LlamaEngineOptions } from "../../src/engines/llama/options.ts";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";
import { windowTokens, writeRandomKind, type RandomKind } from "../fixtures/random-kinds.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { drive, openBuilt, openProgrammed, until, type TestEngine } from "./local-engine.ts";
import { randomRequests, visibleAnswer } from "./random-requests.ts";
import { isNightly, runs, times } from "../support/runs.ts";

type Driven = Omit<TestEngine, "model" | "close">;

// With one thread and a memory for each sequence, llama.cpp computes the same numbers for a token alone and among others: answers must be
// equal to the last digit. In one memory two answers lie in another order, in which sums round differently.
describe("a model of random numbers", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  let guessing: Driven;
  let plain: Driven;

  beforeAll(async () => {
    const model = join(folder, "random.gguf");
    writeRandomModel(model);
    const open = async (speculation: LlamaEngineOptions["speculation"]) =>
      drive(await openBuilt({ model, slots: 8, ...(speculation && { speculation }) }));
    guessing = await open("always");
    plain = await open("off");
  });
  afterAll(async () => {
    await guessing.engine.close(0);
    await plain.engine.close(0);
    rmSync(folder, { recursive: true, force: true });
  });

  test("gives the same answers with guesses and without, whatever is asked", async () => {
    await fc.assert(
      fc.asyncProperty(randomRequests(120), async (request) => {
        const [with_, without] = await Promise.all([guessing, plain].map((local) => local.ask(request)));
        if (!with_ || !without) throw new Error("There is no answer.");
        expect(visibleAnswer(with_)).toEqual(visibleAnswer(without));
      }),
      runs(30),
    );
    const { draftedTokens = 0, acceptedTokens = 0 } = guessing.counters();
    // Greedy answers of such a model soon run in circles.
    expect(acceptedTokens).toBeGreaterThan(100);
    expect(draftedTokens).toBeGreaterThan(acceptedTokens);
    expect(plain.counters()).toMatchObject({ draftedTokens: 0, acceptedTokens: 0 });
  });

  test("keeps to a schema as without guesses, and reads what it wrote as without", async () => {
    const item = { type: "object", properties: { ab: { type: "integer" } }, required: ["ab"] };
    const schema = { type: "array", items: { ...item, additionalProperties: false }, minItems: 3, maxItems: 5 };
    const before = guessing.counters().acceptedTokens ?? 0;
    for (let seed = 0; seed < 10; seed++) {
      const asked: Partial<GenerationRequest> = {
        prompt: { kind: "text", prompts: ['[{"ab": 1}, {"ab": 1}, {"ab":'] },
        output: { type: "json-schema", name: "items", schema, strict: true, path: "response_format" },
        sampling: { seed, temperature: 0.7 },
        limits: { maxTokens: 150, cachePrompt: false },
      };
      const [with_, without] = await Promise.all([guessing, plain].map((local) => local.ask(asked)));
      if (!with_ || !without) throw new Error("There is no answer.");
      expect(with_.end.kind).toBe("done");
      expect(with_.choices[0]?.text).toMatch(/^\[/);
      expect(visibleAnswer(with_)).toEqual(visibleAnswer(without));
    }
    expect(guessing.counters().acceptedTokens).toBeGreaterThan(before);
  });

  test("takes a prediction for what may come, and tells how much of it came", async () => {
    // Letters alone, each a token of its own: so a text is the same tokens wherever it stands.
    const letters = Object.fromEntries(Array.from({ length: 26 }, (_, i) => [97 + i, 100]));
    const asked: Partial<GenerationRequest> = {
      prompt: { kind: "text", prompts: ["What comes?"] },
      sampling: { seed: 4, temperature: 2, logitBias: letters },
      limits: { maxTokens: 60, cachePrompt: false },
    };
    const expected = await plain.ask(asked);
    const text = expected.choices[0]?.text ?? "";
    expect(text).toMatch(/^[a-z]{60}$/);
    expect(expected.usage?.completionDetails).toEqual({ reasoning_tokens: 0 });
    const steps = guessing.counters().decodeSteps ?? 0;
    const predicted = await guessing.ask({ ...asked, prediction: text });
    expect((guessing.counters().decodeSteps ?? 0) - steps).toBeLessThan(20);
    expect(predicted.choices).toEqual(expected.choices);
    expect(predicted.usage?.completionDetails?.["accepted_prediction_tokens"]).toBeGreaterThan(45);
    // Half of it was another text.
    const half = await guessing.ask({ ...asked, prediction: `${text.slice(0, 30)}${"?".repeat(30)}` });
    expect(half.choices).toEqual(expected.choices);
    const { accepted_prediction_tokens: accepted = 0, rejected_prediction_tokens: rejected } =
      half.usage?.completionDetails ?? {};
    expect(accepted).toBeGreaterThan(15);
    expect(accepted).toBeLessThan(30);
    expect(rejected).toBeGreaterThan(0);
    const off = await plain.ask({ ...asked, prediction: text });
    expect(visibleAnswer(off)).toMatchObject({ choices: expected.choices });
    expect(off.usage?.completionDetails).toMatchObject({ accepted_prediction_tokens: 0 });
  });

  test("goes on after a cancelled answer as if nothing had been guessed", async () => {
    const prompts = { kind: "text", prompts: [[65, 66, 67, 65, 66, 67, 65, 66]] } as const;
    const asked = { prompt: prompts, limits: { maxTokens: 100, ignoreEos: true } };
    const expected = visibleAnswer(await plain.ask({ ...asked, limits: { ...asked.limits, cachePrompt: false } }));
    for (let batches = 1; batches < 12; batches++) {
      let left = batches;
      for await (const batch of guessing.batches(asked)) if (batch.length === 0 || --left === 0) break;
      await guessing.idle();
      const again = await guessing.ask(asked);
      expect(again.choices).toEqual((expected as Generation).choices);
    }
  });
});

describe("a model whose memory cannot be cut anywhere", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Answers to a text that repeats, and the counters then. */
  async function answers(
    kind: RandomKind,
    options: Partial<LlamaEngineOptions>,
  ): Promise<{ readonly all: readonly unknown[]; readonly counters: Readonly<Record<string, number>> }> {
    const model = join(folder, `${kind}.gguf`);
    writeRandomKind(model, kind);
    const local = drive(await openBuilt({ model, contextSize: 512, ...options }));
    const all: unknown[] = [];
    for (let seed = 0; seed < 6; seed++) {
      const tokens = Array.from({ length: 55 }, (_, i) => 300 + (i % (7 + seed)));
      const limits = { maxTokens: 5 * windowTokens, cachePrompt: false, ignoreEos: true };
      // Every second one is likely to say what stands there already.
      const sampling = seed % 2 === 0 ? { seed, temperature: 0.2, frequencyPenalty: -2 } : { temperature: 0 };
      all.push(visibleAnswer(await local.ask({ prompt: { kind: "text", prompts: [tokens] }, limits, sampling })));
    }
    const counters = local.counters();
    await local.engine.close(0);
    return { all, counters };
  }

  test("is guessed at within its window, where it has one memory", async () => {
    const { all, counters } = await answers("gemma3", { slots: 2, speculation: "always" });
    const plain = await answers("gemma3", { slots: 2, speculation: "off" });
    expect(all).toEqual(plain.all);
    expect(counters.acceptedTokens).toBeGreaterThan(200);
    // Nothing was read twice: then all of it would be.
    expect(counters.promptTokens).toBe(plain.counters.promptTokens);
    const { counters: several } = await answers("gemma3", { slots: 5, speculation: "always" });
    expect(several.draftedTokens).toBe(0);
  });

  test.each(["mamba", "lfm2"] as const)("is not guessed at where it cannot forget (%s)", async (kind) => {
    expect((await answers(kind, { slots: 1, speculation: "always" })).counters).toMatchObject({ draftedTokens: 0 });
  });
});

describe("a programmed model", () => {
  let guessing: TestEngine;
  let plain: TestEngine;
  const names = Array.from({ length: 40 }, (_, i) => `(${i})`);
  const scripts = {
    greeting: { say: "Hello there, friend." },
    endless: { say: [" tick", " tack", " tock", " tuck"], afterwards: "repeat" },
    odds: { draw: [["red", 0.7] as const, ["green", 0.2] as const, ["blue", 0.1] as const], afterwards: "repeat" },
    noise: { draw: names.map((name) => [name, 1 / names.length] as const), afterwards: "repeat" },
  } as const;

  beforeAll(async () => {
    guessing = await openProgrammed({ slots: 2, speculation: "always", contextSize: 3000 }, { scripts });
    plain = await openProgrammed({ slots: 2, speculation: "off", contextSize: 3000 }, { scripts });
  });
  afterAll(async () => {
    await guessing.close();
    await plain.close();
  });

  test("needs few passes for a text that repeats, and tells what was guessed", async () => {
    const before = guessing.counters();
    const { choices, timings, usage } = await guessing.complete("<|script:endless|>", { limits: { maxTokens: 400 } });
    expect(choices[0]?.text).toBe(" tick tack tock tuck".repeat(100));
    const after = guessing.counters();
    expect((after.decodeSteps ?? 0) - (before.decodeSteps ?? 0)).toBeLessThan(40);
    const { draftedTokens = 0, acceptedTokens = 0 } = timings ?? {};
    expect(acceptedTokens).toBeGreaterThan(350);
    expect(acceptedTokens).toBe((after.acceptedTokens ?? 0) - (before.acceptedTokens ?? 0));
    expect(draftedTokens).toBe((after.draftedTokens ?? 0) - (before.draftedTokens ?? 0));
    expect(usage?.completionTokens).toBe(400);
    const { timings: without } = await plain.complete("<|script:endless|>", { limits: { maxTokens: 400 } });
    expect(without).not.toHaveProperty("draftedTokens");
  });

  test("ends after exactly as many tokens as it may have, and where a stop string stands", async () => {
    const text = " tick tack tock tuck".repeat(20);
    for (let maxTokens = 1; maxTokens <= 40; maxTokens++) {
      const { choices, usage } = await guessing.complete("<|script:endless|>", { limits: { maxTokens } });
      expect(choices[0]).toMatchObject({ text: text.slice(0, maxTokens * 5), finish: { reason: "length" } });
      expect(usage?.completionTokens).toBe(maxTokens);
    }
    const stop = "k tick tack tock t";
    const stopped = await guessing.complete("<|script:endless|>", { limits: { maxTokens: 100, stop: [stop] } });
    const expected = await plain.complete("<|script:endless|>", { limits: { maxTokens: 100, stop: [stop] } });
    expect(visibleAnswer(stopped)).toEqual(visibleAnswer(expected));
    expect(stopped.choices[0]?.text).toBe(text.slice(0, text.indexOf(stop)));
  });

  test("gives several choices in one memory", async () => {
    for (const name of ["endless", "odds", "noise"]) {
      const asked = { n: 2, sampling: { seed: 3 }, limits: { maxTokens: 500 } };
      const several = await guessing.complete(`<|script:${name}|>`, asked);
      expect(visibleAnswer(several)).toEqual(visibleAnswer(await plain.complete(`<|script:${name}|>`, asked)));
    }
  });

  test("draws with the same probabilities, also behind what was guessed right", async () => {
    const wanted = isNightly ? 2400 : 1000;
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= 4; seed++) {
      const asked = { sampling: { seed }, limits: { maxTokens: wanted } };
      const { choices } = await guessing.complete("<|script:odds|>", asked);
      expect(choices).toEqual((await plain.complete("<|script:odds|>", asked)).choices);
      const words = choices[0]?.text?.match(/red|green|blue/g) ?? [];
      expect(words).toHaveLength(wanted);
      // Pairs, since what was guessed is what stood behind the same words before.
      for (let i = 1; i < words.length; i += 2) {
        const pair = `${words[i - 1]} ${words[i]}`;
        seen.set(pair, (seen.get(pair) ?? 0) + 1);
      }
    }
    const chances = { red: 0.7, green: 0.2, blue: 0.1 };
    let distance = 0;
    for (const [a, p] of Object.entries(chances))
      for (const [b, q] of Object.entries(chances)) {
        const expected = p * q * 2 * wanted;
        distance += ((seen.get(`${a} ${b}`) ?? 0) - expected) ** 2 / expected;
      }
    // Chi-square of eight degrees of freedom: larger in one of a thousand samples.
    expect(distance).toBeLessThan(26.1);
    expect(guessing.counters().acceptedTokens).toBeGreaterThan(1000);
  });

  test("soon guesses nothing where no guess is right", async () => {
    const drafted = async (seed: number, maxTokens: number): Promise<number> => {
      const asked = { sampling: { seed }, limits: { maxTokens } };
      return (await guessing.complete("<|script:noise|>", asked)).timings?.draftedTokens ?? 0;
    };
    const seeds = [5, 6, 7, 8, 9].slice(0, times(2));
    let early = 0;
    let all = 0;
    for (const seed of seeds) {
      early += await drafted(seed, 1400);
      all += await drafted(seed, 2800);
    }
    expect(early).toBeGreaterThan(0);
    // In the second half nearly every two words stood somewhere before. How many are tried differs from text to text.
    expect((all - early) / (seeds.length * 1400)).toBeLessThan(0.1);
  });

  test("stays no further ahead of its reader than without guesses", async () => {
    const before = guessing.counters();
    const reader = guessing.batches({
      prompt: { kind: "text", prompts: ["<|script:endless|>"] },
      limits: { maxTokens: 2000 },
    });
    const batches = reader[Symbol.asyncIterator]();
    await batches.next();
    let last = -1;
    await until(() => {
      const now = (guessing.counters().generatedTokens ?? 0) - (before.generatedTokens ?? 0);
      const stands = now === last && now > 10;
      last = now;
      return stands;
    });
    expect(last).toBeLessThanOrEqual(2 * 64);
    await batches.return?.();
    await guessing.idle();
  });

  // Each pass takes less than a tenth of a millisecond, whatever is in it.
  test("guesses by itself where that pays", async () => {
    const auto = await openProgrammed({ slots: 2, contextSize: 3000 }, { scripts });
    const { choices } = await auto.complete("<|script:endless|>", { limits: { maxTokens: 1000 } });
    expect(choices[0]?.text).toBe(" tick tack tock tuck".repeat(250));
    expect(auto.counters().acceptedTokens).toBeGreaterThan(100);
    await auto.close();
  });
});
