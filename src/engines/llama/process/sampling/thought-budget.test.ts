import fc from "fast-check";
import { expect, test } from "vitest";
import { ReasoningBudget } from "./token-limits.ts";

const close = [901, 902];

/** Plays a model that thinks for ever unless it is made to stop; thinking ends behind both tokens of the closing. */
function thoughtOf(tokens: number, { thinksAlready = true, most = 200 } = {}): number[] {
  const budget = new ReasoningBudget({ tokens, closings: [close], startsInReasoning: thinksAlready });
  const said: number[] = [];
  let isThinking = thinksAlready;
  while (said.length < most) {
    const forced = budget.forced;
    const token = forced ?? (isThinking ? 1 : said.length === 0 ? 900 : 2);
    said.push(token);
    if (token === 900) isThinking = true;
    if (token === 902) isThinking = false;
    budget.read(token, isThinking ? "reasoning" : "content");
    if (token === 2) break;
  }
  return said;
}

test("a thought that the prompt began has as many tokens as it may", () => {
  fc.assert(
    fc.property(fc.nat(50), (tokens) => {
      expect(thoughtOf(tokens)).toEqual([...Array<number>(tokens).fill(1), ...close, 2]);
    }),
  );
});

test("so has one that the model began, behind its marker", () => {
  expect(thoughtOf(3, { thinksAlready: false })).toEqual([900, 1, 1, 1, ...close, 2]);
  expect(thoughtOf(0, { thinksAlready: false })).toEqual([900, ...close, 2]);
});

test("a closing that a grammar forbids is tried again, and none is forced once the thought is closed", () => {
  const budget = new ReasoningBudget({ tokens: 0, closings: [close], startsInReasoning: true });
  budget.read(5, "reasoning");
  expect(budget.forced).toBeUndefined();
  budget.read(6, "reasoning");
  expect(budget.forced).toBe(901);
  budget.read(901, "reasoning");
  // The reader may see the end of the thought only later.
  budget.read(902, "reasoning");
  expect(budget.forced).toBeUndefined();
  budget.read(7, "content");
  expect(budget.forced).toBeUndefined();
});

test("a further thought is closed at once, in the way for those", () => {
  const again = [903];
  const budget = new ReasoningBudget({ tokens: 1, closings: [close, again], startsInReasoning: true });
  budget.read(1, "reasoning");
  for (const token of close) budget.read(token, token === 902 ? "content" : "reasoning");
  budget.read(900, "reasoning");
  expect(budget.forced).toBe(903);
});
