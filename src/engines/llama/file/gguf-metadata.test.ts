import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeRandomModel } from "../../../../test/fixtures/random-model.ts";
import { writeRandomEncoder } from "../../../../test/fixtures/random-encoder.ts";
import { cacheTypes, type KvCacheType } from "../cache-type.ts";
import { parseGgufHeader, parseGgufMetadata } from "./gguf-metadata.ts";
import { memoryNeed, totalOf } from "./memory-need.ts";
import { readModelFile } from "./read-model-file.ts";

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "truewire-"));
  file = join(folder, "tiny.gguf");
  writeRandomModel(file, { chatTemplate: "{{ messages }}", contextLength: 2048 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a header cut anywhere is told from a whole one", () => {
  const bytes = readFileSync(file);
  const whole = parseGgufMetadata(bytes, () => false);
  expect(whole?.get("llama.block_count")).toBe(2);
  expect(whole?.get("tokenizer.ggml.tokens")).toBe(512);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: bytes.length }), (length) => {
      const part = parseGgufMetadata(bytes.subarray(0, length), () => false);
      if (part) expect(part).toEqual(whole);
      const header = parseGgufHeader(bytes.subarray(0, length), () => false);
      if (header) expect(header).toEqual(parseGgufHeader(bytes, () => false));
    }),
  );
});

test("any bytes at all end in pairs, in nothing, or in an Error of one sentence", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
      const bytes = Buffer.concat([readFileSync(file).subarray(0, 24), noise]);
      try {
        parseGgufMetadata(bytes, () => true);
      } catch (error) {
        expect(String(error)).toMatch(/^Error: unknown type \d+ of a GGUF value$/);
      }
    }),
  );
});

test("what the file says of the model", async () => {
  expect(await readModelFile(file)).toMatchObject({
    bytes: readFileSync(file).length,
    hasTemplate: true,
    trainedContext: 2048,
    shape: { headsKv: [1, 1], keyLength: 32, valueLength: 32, width: 64, feedForward: 128, vocabulary: 512 },
  });
});

test("embeddings count twice where the output is computed with them, too", async () => {
  expect(await readModelFile(file)).toMatchObject({ tiedBytes: (512 * 64 * 34) / 32 });
  const untied = join(folder, "untied.gguf");
  writeRandomModel(untied, { counts: true });
  expect(await readModelFile(untied)).toMatchObject({ tiedBytes: 0 });
  // An encoder has no output.
  const encoder = join(folder, "encoder.gguf");
  writeRandomEncoder(encoder, { pooling: "mean" });
  expect(await readModelFile(encoder)).toMatchObject({ tiedBytes: 0, isCausal: false });
});

test("a file that is missing, no GGUF, or cut off within its header", async () => {
  const broken = join(folder, "broken.gguf");
  await expect(readModelFile(join(folder, "no.gguf"))).rejects.toMatchObject({ reason: "no-such-file" });
  writeFileSync(broken, "I am a text.");
  await expect(readModelFile(broken)).rejects.toMatchObject({ reason: "not-a-gguf" });
  writeFileSync(broken, readFileSync(file).subarray(0, 300));
  await expect(readModelFile(broken)).rejects.toMatchObject({ reason: "load-failed" });
});

test("a longer context, more slots, more weights: never less memory", () => {
  const positive = fc.integer({ min: 1, max: 64 });
  const window = fc.option(fc.record({ tokens: fc.integer({ min: 1, max: 4096 }), every: positive }), {
    nil: undefined,
  });
  const shape = fc.record({
    headsKv: fc.array(fc.integer({ min: 0, max: 32 }), { maxLength: 64 }),
    keyLength: positive,
    valueLength: positive,
    width: positive,
    feedForward: positive,
    vocabulary: positive,
    recurrentState: positive,
    window,
  });
  const plan = fc.record({ contextSize: fc.integer({ min: 1, max: 100_000 }), slots: positive, batchSize: positive });
  fc.assert(
    fc.property(shape, plan, positive, (shape, plan, more) => {
      const need = (over: Partial<typeof plan>, bytes = 1000): number =>
        totalOf(memoryNeed({ bytes, shape }, { ...plan, ...over }));
      const plain = need({});
      expect(need({ contextSize: plan.contextSize + more })).toBeGreaterThanOrEqual(plain);
      expect(need({ slots: plan.slots + more })).toBeGreaterThan(plain);
      expect(need({}, 1000 + more)).toBe(plain + more);
    }),
  );
});

test("a quantized cache takes as many bytes as its type says", () => {
  const shape = {
    headsKv: [2, 2],
    keyLength: 64,
    valueLength: 64,
    width: 128,
    feedForward: 256,
    vocabulary: 100,
    recurrentState: 0,
  };
  const cache = (type: KvCacheType): number =>
    memoryNeed({ bytes: 0, shape }, { contextSize: 1024, slots: 2, batchSize: 64, cacheTypeK: type, cacheTypeV: type })
      .cache;
  expect(cache("f16")).toBe(2 * 1024 * 2 * 2 * 128 * 2);
  for (const [type, { bytes }] of Object.entries(cacheTypes))
    expect(cache(type as KvCacheType)).toBe((cache("f16") * bytes) / 2);
});
