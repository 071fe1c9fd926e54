import fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { NativeContext } from "../../src/engines/llama/process/c-api/native-context.ts";
import type { NativeModel } from "../../src/engines/llama/process/c-api/native-model.ts";
import { PromptCache } from "../../src/engines/llama/process/prompt-cache/prompt-cache.ts";
import { Sequence } from "../../src/engines/llama/process/prompt-cache/sequence.ts";
import { writeRandomKind } from "../fixtures/random-kinds.ts";
import { writeRandomModel } from "../fixtures/random-model.ts";
import { openNativeModel } from "./native-model.ts";
import { runs } from "../support/runs.ts";

/** Each kind of memory: recurrent, recurrent and attention by turns, with a window, and one that can be cut anywhere. */
const kinds = ["mamba", "lfm2", "gemma3", "llama"] as const;

const folder = mkdtempSync(join(tmpdir(), "truewire-"));
const models = new Map<string, NativeModel>();
beforeAll(() => {
  for (const kind of kinds) {
    const path = join(folder, `${kind}.gguf`);
    if (kind === "llama") writeRandomModel(path);
    else writeRandomKind(path, kind);
    models.set(kind, openNativeModel(path));
  }
});
afterAll(() => {
  for (const model of models.values()) model.free();
  rmSync(folder, { recursive: true, force: true });
});

function modelOf(kind: string): NativeModel {
  const model = models.get(kind);
  if (!model) throw new Error(kind);
  return model;
}

function open(kind: string, unifiedKv: boolean): { context: NativeContext; sequences: Sequence[] } {
  const context = new NativeContext(modelOf(kind), {
    capacity: 4096,
    sequences: 4,
    batchSize: 64,
    maxOutputs: 4,
    threads: 1,
    flashAttention: "off",
    unifiedKv: unifiedKv,
  });
  return { context, sequences: [0, 1, 2, 3].map((id) => new Sequence(context, id)) };
}

/** Evaluates tokens behind what a sequence holds, in pieces of 50, and tells the logits behind the last one. */
function read(context: NativeContext, sequence: Sequence, tokens: readonly number[]): Float32Array {
  let logits: Float32Array = new Float32Array();
  for (let from = 0; from < tokens.length; from += 50) {
    const piece = tokens.slice(from, from + 50);
    context.batch.clear();
    for (const [at, token] of piece.entries())
      context.batch.add(token, sequence.length + at, sequence.id, at === piece.length - 1);
    expect(context.decode()).toBe("done");
    sequence.append(piece);
    logits = context.logits(piece.length - 1).slice();
  }
  return logits;
}

/** Reads the rest of a text, with a checkpoint at each of these places. */
function readInPieces(
  context: NativeContext,
  sequence: Sequence,
  text: readonly number[],
  places: readonly number[],
): Float32Array {
  let logits: Float32Array = new Float32Array();
  while (sequence.length < text.length) {
    const from = sequence.length;
    const place = places.find((at) => at > from) ?? text.length;
    logits = read(context, sequence, text.slice(from, Math.min(place, text.length)));
    if (places.includes(sequence.length)) sequence.checkpoint();
  }
  return logits;
}

function textOf(seed: number, length: number): number[] {
  return Array.from({ length }, (_, at) => (at * 7 + seed * 31 + ((at * at) % 11)) % 200);
}

function distance(one: Float32Array, other: Float32Array): number {
  return one.reduce((most, logit, token) => Math.max(most, Math.abs(logit - (other[token] ?? 0))), 0);
}

/** The same but for how passes of other shapes round. */
function expectSame(logits: Float32Array, fresh: Float32Array): void {
  expect(distance(logits, fresh)).toBeLessThan(0.05);
}

describe.each(kinds)("%s", (kind) => {
  test.each([true, false])(
    "for every two texts: the second one goes on from the first as a fresh sequence would (one memory: %s)",
    (unifiedKv) => {
      const { context, sequences } = open(kind, unifiedKv);
      const [used, fresh] = sequences as [Sequence, Sequence];
      // The layers of gemma3 have room for 256 tokens there.
      const length = fc.integer({ min: 2, max: 500 });
      const cases = fc.record({ first: length, common: length, second: length, place: length, other: length });
      try {
        fc.assert(
          fc.property(cases, ({ first, common, second, place, other }) => {
            const places = [place, other].toSorted((a, b) => a - b);
            used.clear();
            fresh.clear();
            const text = textOf(1, first);
            readInPieces(context, used, text, places);
            const asked = [...text.slice(0, common), ...textOf(2, second)];
            const known = used.reusable({ tokens: asked, adapters: "" }, asked.length - 1);
            const kept = used.truncate(Math.min(used.commonLength(asked), asked.length - 1));
            // What was promised is what there is.
            expect(kept).toBe(known);
            expectSame(readInPieces(context, used, asked, places), readInPieces(context, fresh, asked, places));
          }),
          runs(8),
        );
      } finally {
        context.free();
      }
    },
  );

  test.each([true, false])(
    "a copy that moves into another sequence goes on as the first one (one memory: %s)",
    (one) => {
      const { context, sequences } = open(kind, one);
      const [first, second, fresh] = sequences as [Sequence, Sequence, Sequence];
      try {
        const text = textOf(3, 250);
        readInPieces(context, first, text, [100, 200]);
        const copy = first.copy();
        if (!copy) throw new Error("no copy was made");
        first.clear();
        read(context, second, textOf(4, 80));
        second.restore(copy);
        expect(second.tokens).toEqual(text);
        const more = textOf(5, 9);
        const goesOn = read(context, second, more);
        readInPieces(context, fresh, text, [100, 200]);
        expectSame(goesOn, read(context, fresh, more));
        // And back to the checkpoint that came along.
        const branch = [...text.slice(0, 230), ...textOf(6, 20)];
        expect(second.truncate(230)).toBe(kind === "llama" ? 230 : 200);
        fresh.clear();
        expectSame(readInPieces(context, second, branch, [100, 200]), readInPieces(context, fresh, branch, [100, 200]));
      } finally {
        context.free();
      }
    },
  );

  test("a sequence that copies another's prefix has its checkpoints, too", () => {
    const { context, sequences } = open(kind, true);
    const [first, second, fresh] = sequences as [Sequence, Sequence, Sequence];
    try {
      const text = textOf(7, 250);
      readInPieces(context, first, text, [128]);
      const branch = [...text.slice(0, 140), ...textOf(8, 60)];
      const known = first.reusable({ tokens: branch, adapters: "" }, 140);
      expect(known).toBe(kind === "mamba" || kind === "lfm2" ? 128 : 140);
      second.copyFrom(first, known);
      expect(second.length).toBe(known);
      expectSame(readInPieces(context, second, branch, [128]), readInPieces(context, fresh, branch, [128]));
      // The first is as it was.
      const more = textOf(9, 9);
      fresh.clear();
      const goesOn = read(context, first, more);
      readInPieces(context, fresh, text, [128]);
      expectSame(goesOn, read(context, fresh, more));
    } finally {
      context.free();
    }
  });

  test("the prompt cache stays within its limit, after any operations", () => {
    const { context, sequences } = open(kind, true);
    const one = sequences[0] as Sequence;
    read(context, one, textOf(1, 100));
    const limit = Math.floor(one.copySize() * 2.5);
    one.clear();
    const states = new PromptCache(limit, sequences);
    const step = fc.record({
      slot: fc.nat(3),
      text: fc.nat(9),
      length: fc.integer({ min: 1, max: 120 }),
      keep: fc.boolean(),
    });
    try {
      fc.assert(
        fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
          for (const { slot, text, length, keep } of steps) {
            const sequence = sequences[slot] as Sequence;
            const asked = textOf(text, length);
            if (keep) states.save(sequence);
            const found = states.find({ tokens: asked, adapters: "" }, asked.length - 1);
            if (found) {
              states.take(found.state, found.reusable);
              sequence.restore(found.state);
            }
            sequence.truncate(Math.min(sequence.commonLength(asked), asked.length - 1));
            read(context, sequence, asked.slice(sequence.length));
            states.checkpoint(sequence);
            expect(states.bytes).toBeLessThanOrEqual(limit);
            expect(sequence.checkpoints.length).toBeLessThanOrEqual(8);
          }
        }),
        runs(5),
      );
    } finally {
      context.free();
    }
  });
});

// A copy is optional: a lack of memory for it must not fail a request.
test("where there is no memory for a copy, none is made, and the sequence does not change", () => {
  const model = modelOf("mamba");
  const api = { ...model.api, llama_state_seq_get_size_ext: () => Number.MAX_SAFE_INTEGER };
  const poor = Object.create(model, { api: { value: api } }) as NativeModel;
  const sizes = { capacity: 512, sequences: 1, batchSize: 64, maxOutputs: 4, threads: 1, unifiedKv: true } as const;
  const context = new NativeContext(poor, { ...sizes, flashAttention: "off" });
  try {
    const sequence = new Sequence(context, 0);
    const states = new PromptCache(Number.MAX_SAFE_INTEGER, [sequence]);
    read(context, sequence, textOf(1, 100));
    states.checkpoint(sequence);
    states.save(sequence);
    expect([sequence.checkpoints, states.states, sequence.length]).toEqual([[], [], 100]);
  } finally {
    context.free();
  }
});

// Four agents with a common system prompt had four copies of it in the prompt cache.
test("for every two texts with a common prefix: their copies share its blocks, and a restored sequence has the same state", () => {
  const context = new NativeContext(modelOf("llama"), {
    capacity: 16_384,
    sequences: 2,
    batchSize: 64,
    maxOutputs: 4,
    threads: 1,
    flashAttention: "off",
    unifiedKv: true,
  });
  const sequences = [new Sequence(context, 0), new Sequence(context, 1)] as const;
  const [one, other] = sequences;
  const lengths = fc.record({
    first: fc.integer({ min: 64, max: 4000 }),
    common: fc.nat(4000),
    more: fc.integer({ min: 64, max: 1500 }),
  });
  try {
    fc.assert(
      fc.property(lengths, ({ first, common, more }) => {
        one.clear();
        other.clear();
        const cache = new PromptCache(2 ** 30, sequences);
        read(context, one, textOf(1, first));
        const wholeOfOne = context.readState(one.id, "all");
        cache.save(one);
        other.copyFrom(one, Math.min(common, first));
        read(context, other, textOf(2, more));
        const wholeOfOther = context.readState(other.id, "all");
        const before = cache.bytes;
        const tokenBytes = one.copySize() / first;
        cache.save(other);
        // Of the common prefix, less than a block is copied again.
        expect(cache.bytes - before).toBeLessThan((more + 1024) * tokenBytes + 10_000);
        for (const sequence of sequences) {
          const state = sequence.copy();
          const tokens = [...sequence.tokens];
          sequence.clear();
          if (!state) throw new Error("The sequence was not copied.");
          sequence.restore(state);
          expect(sequence.tokens).toEqual(tokens);
        }
        expect(sameState(context.readState(one.id, "all"), wholeOfOne)).toBe(true);
        expect(sameState(context.readState(other.id, "all"), wholeOfOther)).toBe(true);
        // The slots' copies have nothing that the cache lacks, but the rest of the last block.
        for (const sequence of sequences) expect(sequence.unsavedSize()).toBeLessThan(1024 * tokenBytes);
      }),
      runs(4),
    );
  } finally {
    context.free();
  }
});

function sameState(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one !== null && other !== null && Buffer.from(one).equals(other);
}
