import * as fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { runSync } from "../../core/steps.ts";
import { list, checkedInSteps } from "./shapes.ts";

const small = z.object({ kind: z.literal("small"), text: z.string() });
const large = z.object({ kind: z.literal("large"), within: z.union([z.string(), list(small, { most: 4 })]).nullish() });
const same = z.object({ kind: z.literal("same"), within: list(large, { most: 4 }).optional() });
const shape = z.object({ all: list(z.discriminatedUnion("kind", [small, large, same]), { least: 1, most: 5 }) });

const kind = fc.constantFrom("small", "large", "same", "other");
const value = fc.letrec((tie) => ({
  item: fc.oneof(
    fc.record(
      { kind, text: fc.constantFrom("x", 1), within: fc.oneof(fc.constantFrom("x", null, 7), tie("items")) },
      { requiredKeys: ["kind"] },
    ),
    fc.constantFrom(null, 1, "x", []),
  ),
  items: fc.array(tie("item"), { maxLength: 6 }),
}));
const whole = fc.record({
  all: fc.oneof({ weight: 9, arbitrary: value.items }, { weight: 1, arbitrary: fc.jsonValue() }),
});

const outcome = (checked: z.ZodSafeParseResult<unknown>): unknown =>
  checked.success ? checked.data : checked.error.issues;

test("checkedInSteps returns the result of safeParse", () => {
  fc.assert(
    fc.property(whole, (sent) => {
      const expected = outcome(shape.safeParse(structuredClone(sent)));
      expect(outcome(runSync(checkedInSteps(shape, sent)))).toEqual(expected);
    }),
    { numRuns: 1000 },
  );
});

// 23,000 blocks of a conversation were checked in one piece, in which the server did nothing else.
test("no step checks more than a few items, and no item is checked twice", () => {
  let checks = 0;
  const counted = z.object({ text: z.string() }).refine(() => ++checks > 0);
  const outer = list(z.object({ parts: list(counted, { most: 1000 }) }), { most: 1000 });
  const part = { text: "x" };
  const sent = Array.from({ length: 50 }, () => ({ parts: Array.from({ length: 40 }, () => part) }));
  const work = checkedInSteps(outer, sent);
  let [most, all] = [0, 0];
  for (let step = work.next(); step.done !== true; step = work.next()) {
    most = Math.max(most, checks);
    all += checks;
    checks = 0;
  }
  expect(most).toBeLessThanOrEqual(64);
  expect(checks).toBeLessThanOrEqual(64);
  expect(all + checks).toBe(2000);
});

test("a list that grows between two checks is checked again", () => {
  const sent: unknown[] = [{ kind: "small", text: "a" }];
  expect(runSync(checkedInSteps(shape, { all: sent })).success).toBe(true);
  sent.push({ kind: "small" });
  expect(runSync(checkedInSteps(shape, { all: sent })).success).toBe(false);
});
