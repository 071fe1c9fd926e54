import fc from "fast-check";
import { expect, test } from "vitest";
import { fromOpenAiParameters, toOpenAiParameters } from "./openai-parameters.ts";
import type { GenerationParameters } from "./openai-parameters.ts";

const temperature = fc.double({ min: 0.01, max: 2, noNaN: true });
const topP = fc.double({ min: 0, max: 1, noNaN: true });
const parameters: fc.Arbitrary<GenerationParameters> = fc.record(
  {
    strategy: fc.oneof(
      fc.record({ type: fc.constant("greedy" as const) }),
      fc.record({ type: fc.constant("top-p" as const), temperature, topP }, { requiredKeys: ["type", "topP"] }),
      fc.record(
        { type: fc.constant("top-k" as const), topK: fc.integer({ min: 1 }), temperature, topP },
        { requiredKeys: ["type", "topK"] },
      ),
    ),
    maxTokens: fc.nat(),
    stop: fc.array(fc.string(), { minLength: 1, maxLength: 4 }),
    repetitionPenalty: fc.double({ min: 1.01, max: 2, noNaN: true }),
  },
  { requiredKeys: [] },
);

test("parameters survive the way to OpenAI's form and back, zeros included", () => {
  fc.assert(
    fc.property(parameters, (one) => {
      expect(fromOpenAiParameters(toOpenAiParameters(one))).toEqual(one);
    }),
  );
});

test.each([
  [{ strategy: { type: "greedy" } }, { temperature: 0 }],
  [{ strategy: { type: "top-p", temperature: 0.7, topP: 0 } }, { temperature: 0.7, top_p: 0 }],
  [{ strategy: { type: "top-k", topK: 40 } }, { top_k: 40 }],
  [{ maxTokens: 0, repetitionPenalty: 1, stop: [] }, { max_tokens: 0 }],
  [
    { repetitionPenalty: 1.2, stop: ["a"] },
    { repeat_penalty: 1.2, stop: ["a"] },
  ],
  [{}, {}],
] as const)("%j is written %j", (own, written) => {
  expect(toOpenAiParameters(own)).toEqual(written);
});

test.each([
  [{ temperature: 0, top_p: 0.5 }, { strategy: { type: "greedy" } }],
  [{ top_k: -1, temperature: 1 }, { strategy: { type: "top-p", temperature: 1 } }],
  [{ max_tokens: 10, max_completion_tokens: 5 }, { maxTokens: 5 }],
  [{ stop: null, temperature: null, repeat_penalty: 1 }, {}],
  [{ stop: "x" }, { stop: ["x"] }],
] as const)("%j is read %j", (written, own) => {
  expect(fromOpenAiParameters(written)).toEqual(own);
});

test("an unknown strategy is an error", () => {
  const strategy = { type: "beam" } as unknown as { readonly type: "greedy" };
  expect(() => toOpenAiParameters({ strategy })).toThrow("Unsupported sampling strategy: beam");
});
