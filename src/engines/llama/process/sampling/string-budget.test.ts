import fc from "fast-check";
import { expect, test } from "vitest";
import { StringBudget } from "./token-limits.ts";

const quote = 7;

test("for every JSON, a quote is forced within strings alone, and once they are as long as they may be", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(9), (json, limit) => {
      const budget = new StringBudget(limit, quote);
      let open = -1;
      let escaped = false;
      // A character a token.
      for (const character of json) {
        budget.read(character, true);
        if (escaped) escaped = false;
        else if (character === '"') open = open < 0 ? 0 : -1;
        else if (character === "\\") escaped = true;
        if (open >= 0) open++;
        expect(budget.forced).toBe(open >= 0 && !escaped && open >= limit ? quote : undefined);
      }
      expect(budget.forced).toBeUndefined();
    }),
  );
});

test("quotes in a thought open no string", () => {
  const budget = new StringBudget(1, quote);
  budget.read('He said "', false);
  budget.read("no", false);
  expect(budget.forced).toBeUndefined();
  budget.read('{"', true);
  expect(budget.forced).toBe(quote);
});
