import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { embeddingNeed, needWithEmbeddings } from "./embedding-need.ts";
import { embeddingPlan, type EmbeddingSettings } from "./embedding-plan.ts";
import { localEndpoints } from "./local-endpoints.ts";
import { memoryNeed, totalOf } from "./memory-need.ts";
import type { ModelFile } from "./read-model-file.ts";

const generates = { architecture: "llama", isCausal: true, trainedContext: 4096 };
const encoder = { architecture: "bert", isCausal: false, trainedContext: 512, poolingType: 2 };
const decoder = { architecture: "qwen3", isCausal: true, trainedContext: 32_768, poolingType: 3 };
const settings: EmbeddingSettings = { model: "m.gguf", pooling: null, contextSize: null, batchSize: 512 };

type File = Parameters<typeof embeddingPlan>[0];

test.each<[string, File, Partial<EmbeddingSettings>, object | null]>([
  ["a model that generates", generates, {}, null],
  [
    "told how",
    generates,
    { pooling: "mean" },
    { pooling: "mean", isOnlyUse: false, maxInputTokens: 512, batchSize: 512 },
  ],
  ["by its last token", generates, { pooling: "last" }, { isOnlyUse: false, maxInputTokens: 4096, batchSize: 512 }],
  [
    "an encoder",
    encoder,
    {},
    { pooling: "cls", isOnlyUse: true, maxInputTokens: 512, batchSize: 512, hasKvCache: false },
  ],
  ["told otherwise", encoder, { pooling: "mean" }, { pooling: "mean", isOnlyUse: true }],
  ["with more than it has learned", encoder, { contextSize: 4096 }, { maxInputTokens: 512 }],
  ["with less", encoder, { contextSize: 100 }, { maxInputTokens: 100, batchSize: 100 }],
  ["a decoder for embeddings", decoder, {}, { pooling: "last", isOnlyUse: true, maxInputTokens: 8192, batchSize: 512 }],
  [
    "in one pass",
    decoder,
    { pooling: "mean" },
    { isOnlyUse: true, maxInputTokens: 8192, batchSize: 8192, hasKvCache: true },
  ],
  ["that is to generate", decoder, { pooling: "none" }, null],
  ["a reranker", { ...decoder, poolingType: 4 }, {}, { pooling: "rank", isOnlyUse: true, batchSize: 8192 }],
  ["made one", generates, { pooling: "rank" }, { pooling: "rank", isOnlyUse: true }],
])("%s", (_, file, over, expected) => {
  const plan = embeddingPlan(file, { ...settings, ...over });
  if (expected) expect(plan).toMatchObject(expected);
  else expect(plan).toBeNull();
});

test("an encoder that is to make no embeddings could do nothing", () => {
  expect(() => embeddingPlan(encoder, { ...settings, pooling: "none" })).toThrow("m.gguf only makes embeddings");
  expect(() => embeddingPlan({ ...encoder, poolingType: 0 }, settings)).toThrow("set its pooling");
});

test("what a model can be asked", () => {
  const asked = (file: File, pooling: EmbeddingSettings["pooling"] = null): readonly string[] =>
    localEndpoints(embeddingPlan(file, { ...settings, pooling }), true);
  expect(asked(generates)).toEqual(["chat", "completions"]);
  expect(asked(generates, "mean")).toEqual(["chat", "completions", "embeddings"]);
  expect(asked(encoder)).toEqual(["embeddings"]);
  expect(asked(encoder, "rank")).toEqual(["rerank"]);
});

describe("the memory for embeddings", () => {
  const shape = { headsKv: [4, 4], keyLength: 64, valueLength: 64, width: 256, feedForward: 1024, recurrentState: 0 };
  const file: Pick<ModelFile, "bytes" | "shape"> = { bytes: 1000, shape: { ...shape, vocabulary: 5000 } };
  const plan = fc.record({
    contextSize: fc.integer({ min: 1, max: 16_384 }),
    batchSize: fc.integer({ min: 1, max: 2048 }),
  });

  test("comes on top of what answers take, or in its place", () => {
    fc.assert(
      fc.property(plan, fc.constantFrom("mean", "last"), (sizes, pooling) => {
        const beside = embeddingPlan(generates, { ...settings, ...sizes, pooling });
        const alone = embeddingPlan(encoder, { ...settings, ...sizes });
        if (!beside || !alone) throw new Error("There is no plan.");
        const answers = memoryNeed(file, { ...sizes, slots: 4 });
        const { cache, pass } = embeddingNeed(file, beside);
        const both = needWithEmbeddings(file, { ...sizes, slots: 4 }, beside);
        expect(totalOf(both)).toBe(totalOf(answers) + cache + pass);
        expect(cache).toBeGreaterThan(0);
        const one = needWithEmbeddings(file, { ...sizes, slots: 4 }, alone);
        expect(one.cache).toBe(0);
        expect(one.weights).toBe(answers.weights);
        expect(needWithEmbeddings(file, { ...sizes, slots: 4 }, null)).toEqual(answers);
      }),
    );
  });
});
