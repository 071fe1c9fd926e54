import fc from "fast-check";
import { expect, test } from "vitest";
import { readProgramUsage } from "./output-reader.ts";

test.each([
  [
    { promptTokens: 10, completionTokens: 2 },
    { promptTokens: 10, completionTokens: 2 },
  ],
  [
    { promptTokens: 10, totalTokens: 12 },
    { promptTokens: 10, completionTokens: 2, totalTokens: 12 },
  ],
  [
    { completionTokens: 2, totalTokens: 12 },
    { promptTokens: 10, completionTokens: 2, totalTokens: 12 },
  ],
  // It became "total_tokens": null.
  [{ promptTokens: 10 }, undefined],
  [{ promptTokens: 10, completionTokens: Number.NaN }, undefined],
  [{ promptTokens: 10, totalTokens: 5 }, undefined],
  [undefined, undefined],
  [
    { promptTokens: 3, completionTokens: 1, promptDetails: { cached_tokens: 2, audio_tokens: null } },
    { promptTokens: 3, completionTokens: 1, promptDetails: { cached_tokens: 2 } },
  ],
])("%j is %j", (told, usage) => {
  expect(readProgramUsage(told)).toEqual(usage);
});

test("whatever a program tells, a usage has both counts, and all its numbers are counts", () => {
  const number = fc.oneof(fc.nat(20), fc.double(), fc.constantFrom(undefined, null, "3"));
  const details = fc.option(fc.dictionary(fc.string(), number), { nil: undefined });
  const told = fc.record(
    {
      promptTokens: number,
      completionTokens: number,
      totalTokens: number,
      promptDetails: details,
      completionDetails: details,
    },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(fc.oneof(told, fc.anything()), (value) => {
      const usage = readProgramUsage(value);
      if (!usage) return;
      const { promptTokens, completionTokens, totalTokens = 0, promptDetails = {}, completionDetails = {} } = usage;
      const all = [
        promptTokens,
        completionTokens,
        totalTokens,
        ...Object.values(promptDetails),
        ...Object.values(completionDetails),
      ];
      expect(all.every((count) => Number.isInteger(count) && count >= 0)).toBe(true);
    }),
  );
});
