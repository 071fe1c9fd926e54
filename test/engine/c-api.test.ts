import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NativeContext } from "../../src/engines/llama/process/c-api/native-context.ts";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import { TokenCandidates, SamplerChain } from "../../src/engines/llama/process/c-api/native-sampler.ts";
import { checkLayout } from "../../src/engines/llama/process/c-api/llama-api.ts";
import { Sequence } from "../../src/engines/llama/process/prompt-cache/sequence.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { llamaApi, openNativeModel } from "./native-model.ts";

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
let model: NativeModel;
beforeAll(() => {
  const path = join(folder, "random.gguf");
  writeRandomModel(path);
  model = openNativeModel(path);
});
afterAll(() => {
  model.free();
  rmSync(folder, { recursive: true, force: true });
});

const sizes = { capacity: 2048, batchSize: 512, maxOutputs: 4, threads: 1, flashAttention: "auto" } as const;

test("structures that are laid out in another way are noticed before they are used", () => {
  const api = llamaApi();
  expect(() => checkLayout(api)).not.toThrow();
  const shifted = { ...api.llama_context_default_params(), n_seq_max: 0, n_rs_seq: 1 };
  expect(() => checkLayout({ ...api, llama_context_default_params: () => shifted })).toThrow(
    "the libraries are laid out in another way than llama.cpp 0.5.0: llama_context_params.n_seq_max is 0 in place of 1",
  );
  expect(() => checkLayout({ ...api, llama_version: () => "0.6.1" })).toThrow(
    "the libraries are llama.cpp 0.6.1, and 0.5.0 is needed",
  );
});

function logitsAfter(context: NativeContext, sequence: Sequence, tokens: readonly number[]): Float32Array {
  context.batch.clear();
  for (const [at, token] of tokens.entries())
    context.batch.add(token, sequence.length + at, sequence.id, at === tokens.length - 1);
  expect(context.decode()).toBe("done");
  sequence.append(tokens);
  return context.logits(tokens.length - 1).slice();
}

// A cancelled client's prompt was read on for up to 1.2 seconds.
test("a pass in another thread can be ended, and leaves nothing behind", async () => {
  const context = new NativeContext(model, { ...sizes, sequences: 1, unifiedKv: true });
  try {
    for (let at = 0; at < 512; at++) context.batch.add(at % 200, at, 0, at === 511);
    // Before it begins: a pass of so small a model may be over before this thread is heard of again.
    context.abort();
    expect(await context.decodeAsync()).toBe("aborted");
    expect(context.positions(0)).toEqual([-1, -1]);
    expect(await context.decodeAsync()).toBe("done");
    expect(context.positions(0)).toEqual([0, 511]);
  } finally {
    context.free();
  }
});

function distance(logits: Float32Array, others: Float32Array): number {
  return logits.reduce((most, logit, token) => Math.max(most, Math.abs(logit - (others[token] ?? 0))), 0);
}

test.each([true, false])(
  "a sequence that is given another's beginning goes on as that would (one memory: %s)",
  (one) => {
    const context = new NativeContext(model, { ...sizes, sequences: 3, unifiedKv: one });
    try {
      const [first, second, alone] = [0, 1, 2].map((id) => new Sequence(context, id)) as [Sequence, Sequence, Sequence];
      const beginning = Array.from({ length: 100 }, (_, at) => (at * 7) % 200);
      logitsAfter(context, first, [...beginning, 1, 2, 3]);
      second.copyFrom(first, 100);
      expect([first.length, second.length, second.commonLength([...beginning, 9])]).toEqual([103, 100, 100]);
      const shared = logitsAfter(context, second, [9, 8]);
      const own = logitsAfter(context, alone, [...beginning, 9, 8]);
      alone.clear();
      const other = logitsAfter(context, alone, [...beginning.toReversed(), 9, 8]);
      // Passes of other sizes round differently.
      expect(distance(shared, own)).toBeLessThan(0.2 * distance(shared, other));
      // And the first is as it was.
      expect(first.truncate(100)).toBe(100);
      expect(context.positions(0)).toEqual([0, 99]);
    } finally {
      context.free();
    }
  },
);

// Without one memory, llama.cpp copied the cells with the next decode, as they were then: an answer continued the text of another client.
test.each([true, false])(
  "a copy is what the source was, whatever it becomes before the next decode (one memory: %s)",
  (one) => {
    const context = new NativeContext(model, { ...sizes, sequences: 3, unifiedKv: one });
    try {
      const [first, second, alone] = [0, 1, 2].map((id) => new Sequence(context, id)) as [Sequence, Sequence, Sequence];
      const beginning = Array.from({ length: 100 }, (_, at) => (at * 7) % 200);
      logitsAfter(context, alone, [...beginning.toReversed(), 1]);
      const other = alone.copy();
      logitsAfter(context, first, beginning);
      second.copyFrom(first, 100);
      if (other) first.restore(other);
      expect(first.commonLength(beginning.toReversed())).toBe(100);
      const copied = logitsAfter(context, second, [9, 8]);
      const replaced = logitsAfter(context, first, [9, 8]);
      alone.clear();
      const own = logitsAfter(context, alone, [...beginning, 9, 8]);
      expect(distance(copied, own)).toBeLessThan(0.2 * distance(copied, replaced));
    } finally {
      context.free();
    }
  },
);

// XTC leaves out the likeliest candidates by moving the beginning of their array.
test.each([0, 1])("a chain draws among the candidates that it leaves (temperature %d)", (temperature) => {
  const logits = new Float32Array(model.vocabularySize).fill(-Infinity);
  const [likely, second, rare] = [10, 20, 30] as const;
  logits[likely] = 2;
  logits[second] = 1.9;
  logits[rare] = -3;
  const candidates = new TokenCandidates(model.api, model.vocabularySize);
  const chain = new SamplerChain(model, { xtc: { probability: 1, threshold: 0.1 }, temperature, seed: 1 });
  const drawn = Array.from({ length: 50 }, () => {
    candidates.set(logits);
    expect(candidates.tokens).toEqual([likely, second, rare]);
    return chain.sampleAmong(candidates);
  });
  expect(drawn).toContain(second);
  expect(drawn).not.toContain(likely);
  expect(drawn.every((token) => token === second || (token === rare && temperature > 0))).toBe(true);
  chain.free();
});
