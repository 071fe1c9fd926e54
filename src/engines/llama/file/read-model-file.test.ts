import { expect, test } from "vitest";
import { recommendedSampling } from "./read-model-file.ts";

test("the sampling that a file recommends, without its values out of range", () => {
  expect(
    recommendedSampling({
      "general.sampling.temp": Math.fround(0.6),
      "general.sampling.top_p": 0.949999988079071,
      "general.sampling.top_k": -1,
      "general.sampling.min_p": 7,
      "general.sampling.penalty_repeat": "1.1",
      "general.sampling.penalty_last_n": Number.NaN,
      "general.sampling.xtc_probability": 0.5,
    }),
  ).toEqual({ temperature: 0.6, topP: 0.95, topK: 0, xtc: { probability: 0.5, threshold: 0.1 } });
  expect(recommendedSampling({})).toEqual({});
});
