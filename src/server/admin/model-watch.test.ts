import { expect, test } from "vitest";
import { Rates } from "./model-watch.ts";

test("a rate is that of the last two seconds", () => {
  const rates = new Rates();
  expect(rates.of("a", 0, 1000)).toBeUndefined();
  expect(rates.of("a", 10, 1500)).toBe(20);
  expect(rates.of("a", 20, 2000)).toBe(20);
  // The first second is no longer counted.
  expect(rates.of("a", 60, 4000)).toBe(20);
  expect(rates.of("a", 60, 6000)).toBe(0);
  expect(rates.of("b", 5, 6000)).toBeUndefined();
});

test("a count that begins again has no rate, nor one that was forgotten", () => {
  const rates = new Rates();
  rates.of("a", 100, 0);
  expect(rates.of("a", 5, 500)).toBeUndefined();
  expect(rates.of("a", 10, 1000)).toBe(10);
  rates.forgetBefore(2000);
  expect(rates.of("a", 20, 2500)).toBeUndefined();
});
