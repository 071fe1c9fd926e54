import { expect, test } from "vitest";
import { PrefillBudget } from "./prefill-budget.ts";

/** Lets a budget learn on a machine where a pass has a fixed price, and each token its own. */
function learned(fixedMs: number, tokenMs: number): number {
  const budget = new PrefillBudget(496);
  for (let i = 0; i < 20; i++) budget.observe(0, fixedMs);
  for (let i = 0; i < 50; i++) budget.observe(budget.tokens, fixedMs + budget.tokens * tokenMs);
  return budget.tokens;
}

test("pieces come to cost about 50 ms", () => {
  expect(10 + learned(10, 1.6) * 1.6).toBeGreaterThan(40);
  expect(10 + learned(10, 1.6) * 1.6).toBeLessThan(60);
  expect(learned(1, 0.01)).toBe(496);
});

test("where a step is slow by itself, pieces may cost twice that, and do not shrink to nothing", () => {
  // Pieces of 50 ms would be two tokens here, and each would pay the price of a pass.
  expect(learned(400, 20)).toBe(20);
  expect(learned(40, 20)).toBe(16);
});

// Pieces of 25 tokens of a 135M model took 118 ms, those of 64 took 160.
test("where larger pieces cost much less a token, pieces are no smaller", () => {
  const budget = new PrefillBudget(496);
  for (let i = 0; i < 50; i++) budget.observe(budget.tokens, budget.tokens * (budget.tokens < 64 ? 4.7 : 2.5));
  expect(budget.tokens).toBe(64);
});

test("the short rest of a prompt teaches nothing", () => {
  const budget = new PrefillBudget(496);
  const before = budget.tokens;
  budget.observe(1, 80);
  expect(budget.tokens).toBe(before);
});

test("where few answers wait or none, pieces are larger; how long they take is known", () => {
  const budget = new PrefillBudget(496);
  for (let i = 0; i < 20; i++) budget.observe(0, 2);
  for (let i = 0; i < 50; i++) budget.observe(budget.tokens, budget.tokens * 2);
  expect(budget.tokens).toBe(25);
  expect(new PrefillBudget(496).tokensBeside(0, 1)).toBe(64);
  expect(budget.tokensBeside(0, 1)).toBe(200);
  expect([budget.tokensBeside(1, 1), budget.tokensBeside(4, 1), budget.tokensBeside(2, 4)]).toEqual([25, 25, 100]);
  expect(budget.expectedMs(0)).toBeCloseTo(2, 1);
  expect(budget.expectedMs(25)).toBeCloseTo(52, 0);
});

test("for each prompt that waits there is the time of a piece, up to 400 ms beside answers", () => {
  const budget = new PrefillBudget(496);
  for (let i = 0; i < 20; i++) budget.observe(0, 2);
  for (let i = 0; i < 50; i++) budget.observe(budget.tokens, budget.tokens * 2);
  expect([1, 2, 4, 8].map((prompts) => budget.tokensBeside(8, prompts))).toEqual([25, 50, 100, 200]);
});

// Measured: 135M, Q8_0, one thread. A prompt beside answers was read 16 tokens at a time, for half again as much a token.
test("what answers take beside a prompt is not the prompt's price", () => {
  const budget = new PrefillBudget(496);
  const prompt = (tokens: number): number => (tokens < 22 ? 45 : tokens * 2.1);
  for (let i = 0; i < 50; i++) budget.observe(budget.tokens, prompt(budget.tokens) + 40, 40);
  expect(budget.tokens).toBe(32);
});
