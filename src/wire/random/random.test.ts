import { expect, test, vi } from "vitest";
import { random } from "./random.ts";

test("random numbers are in [0, 1), and two sequences never meet", () => {
  const pairs = Array.from({ length: 20_000 }, () => {
    const [first, second] = [random(), random()];
    expect(first).toBeGreaterThanOrEqual(0);
    expect(first).toBeLessThan(1);
    return `${first} ${second}`;
  });
  expect(new Set(pairs).size).toBe(pairs.length);
});

test("the system is asked for many numbers at once", () => {
  const asked = vi.spyOn(crypto, "getRandomValues");
  for (let i = 0; i < 10_000; i++) random();
  const questions = asked.mock.calls.length;
  asked.mockRestore();
  expect(questions).toBeGreaterThan(0);
  expect(questions).toBeLessThan(10);
});
