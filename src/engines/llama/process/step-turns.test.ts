import { expect, test } from "vitest";
import { StepTurns } from "./step-turns.ts";

function turns(prompting: number, answering: number, count: number): string {
  const turn = new StepTurns();
  return Array.from({ length: count }, () => (turn.next(prompting, answering) === "prompts" ? "p" : "a")).join("");
}

test("one prompt among answers takes every other step", () => expect(turns(1, 3, 6)).toBe("papapa"));
test("many prompts and few answers: several pieces in a row, but never more than four", () => {
  expect(turns(6, 2, 8)).toBe("pppapppa");
  expect(turns(15, 1, 10)).toBe("ppppappppa");
});
test("alone, each has all steps", () => {
  expect(turns(2, 0, 5)).toBe("ppppp");
  expect(turns(0, 2, 5)).toBe("aaaaa");
});
