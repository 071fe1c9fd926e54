import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Sampling } from "../../../../wire/core/request.ts";
import type { PreparedRequest } from "../../preparing/prepared-request.ts";
import type { NativeContext } from "../c-api/native-context.ts";
import { TokenSampler } from "./token-sampler.ts";
import type { Vocabulary } from "../tokens/vocabulary.ts";

/** Samples `count` tokens greedily, from the same logits each time: token 0 is most likely, then 1, then 2. */
function sampled(sampling: Sampling, prompt: readonly number[], count: number): number[] {
  const sampler = new TokenSampler({
    context: { logits: () => new Float32Array([3, 2.5, 1]) } as unknown as NativeContext,
    vocabulary: { endTokens: () => [] } as unknown as Vocabulary,
    message: { sampling: { temperature: 0, ...sampling }, limits: {}, n: 1, bestOf: 1 } as unknown as PreparedRequest,
    seed: 1,
    prompt,
  });
  return Array.from({ length: count }, () => sampler.sample(0).token);
}

describe("repeat_last_n", () => {
  // 0 was read as 1. llama.cpp: "0 = disable penalty, -1 = context size" (include/llama.h, llama_sampler_init_penalties).
  test("0 turns the repeat penalty off", () => {
    expect(sampled({ repeatPenalty: 2, repeatLastN: 0 }, [0], 3)).toEqual([0, 0, 0]);
  });

  test.each<[string, number | undefined, readonly number[], number[]]>([
    ["1: the last token, of the prompt, too", 1, [0], [1, 0, 1]],
    ["2: the last two", 2, [0, 1], [0, 0, 1]],
    ["-1: all", -1, [0, ...Array.from({ length: 100 }, () => 2)], [1, 0, 0]],
    ["absent: the last 64", undefined, [0, ...Array.from({ length: 64 }, () => 2)], [0, 1, 0]],
  ])("%s", (_, repeatLastN, prompt, expected) => {
    const sampling = { repeatPenalty: 2, ...(repeatLastN !== undefined && { repeatLastN }) };
    expect(sampled(sampling, prompt, 3)).toEqual(expected);
  });

  test("frequency and presence penalties count all generated tokens", () => {
    expect(sampled({ presencePenalty: 1, repeatLastN: 0 }, [0], 2)).toEqual([0, 1]);
  });
});

test("logprobs do not change which tokens are sampled", () => {
  const logit = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constant(-Infinity));
  const samplings = fc.record({
    temperature: fc.constantFrom(0, 1),
    presencePenalty: fc.constantFrom(0, 1),
    logitBias: fc.constantFrom({}, { 1: 3 }),
  });
  fc.assert(
    fc.property(fc.array(logit, { minLength: 3, maxLength: 40 }), samplings, fc.nat(3), (row, sampling, top) => {
      const tokens = [undefined, { top }].map((logprobs) => {
        const sampler = new TokenSampler({
          context: { logits: () => Float32Array.from([0, ...row]) } as unknown as NativeContext,
          vocabulary: { endTokens: () => [] } as unknown as Vocabulary,
          message: { sampling, limits: {}, n: 1, bestOf: 1, logprobs } as unknown as PreparedRequest,
          seed: 1,
          prompt: [0],
        });
        return Array.from({ length: 4 }, () => sampler.sample(0).token);
      });
      expect(tokens[1]).toEqual(tokens[0]);
    }),
  );
});
