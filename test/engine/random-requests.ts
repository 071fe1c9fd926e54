import fc from "fast-check";
import type { Generation } from "../../src/wire/core/accumulate.ts";
import type { GenerationRequest } from "../../src/wire/core/request.ts";

// Few different tokens, so that the prompts repeat themselves.
const token = fc.oneof(fc.integer({ min: 65, max: 68 }), fc.integer({ min: 300, max: 500 }));

const greedy = fc.record(
  {
    temperature: fc.constant(0),
    repeatPenalty: fc.constantFrom(1, 1.1),
    dry: fc.record({ multiplier: fc.constant(0.8) }),
  },
  { requiredKeys: ["temperature"] },
);
const sampled = fc.record(
  {
    seed: fc.integer({ min: 0, max: 1e9 }),
    temperature: fc.constantFrom(0.05, 0.3, 1),
    topK: fc.constantFrom(2, 40),
    topP: fc.constantFrom(0.5, 0.95),
    frequencyPenalty: fc.constantFrom(0.2, -2),
    logitBias: fc.constant({ 70: 3, 71: 3 }),
    xtc: fc.record({ probability: fc.constant(0.5), threshold: fc.constant(0.05) }),
  },
  { requiredKeys: ["seed", "temperature"] },
);

/** Requests of tokens to a model of random numbers, with any sampling whose answer can be repeated, without the prompt cache. */
export function randomRequests(maxTokens: number): fc.Arbitrary<Partial<GenerationRequest>> {
  return fc
    .record({
      tokens: fc.array(token, { minLength: 1, maxLength: 60 }),
      sampling: fc.oneof(greedy, sampled),
      n: fc.constantFrom(1, 2),
      limits: fc.record(
        {
          maxTokens: fc.integer({ min: 1, max: maxTokens }),
          minTokens: fc.integer({ min: 0, max: maxTokens / 2 }),
          ignoreEos: fc.boolean(),
          stop: fc.array(fc.string({ minLength: 1, maxLength: 2 }), { maxLength: 3 }),
        },
        { requiredKeys: ["maxTokens"] },
      ),
      logprobs: fc.option(fc.record({ top: fc.constantFrom(0, 3) }), { nil: undefined }),
      wantsTokenIds: fc.boolean(),
    })
    .map(({ tokens, logprobs, limits, ...rest }) => ({
      ...rest,
      prompt: { kind: "text", prompts: [tokens] },
      limits: { ...limits, cachePrompt: false },
      ...(logprobs && { logprobs }),
    }));
}

/** What a client sees, without times. */
export function visibleAnswer({ choices, usage, end }: Generation): unknown {
  return { choices, usage, end };
}
