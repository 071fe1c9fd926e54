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

test("the short rest of a prompt teaches nothing", () => {
  const budget = new PrefillBudget(496);
  const before = budget.tokens;
  budget.observe(1, 80);
  expect(budget.tokens).toBe(before);
});
