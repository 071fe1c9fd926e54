import fc from "fast-check";
import { expect, test } from "vitest";
import type { Sampling } from "../../../generation/request.ts";
import { drawToken, type History, type LogitWindow } from "./draw-token.ts";

const nothing: History = { counts: new Map(), recent: new Set() };
const noBias: ReadonlyMap<number, number> = new Map();

/** The window that shows only the best `size` of these logits. */
function windowOf(logits: readonly number[], size: number): LogitWindow {
  const order = logits.map((_, token) => token).sort((a, b) => (logits[b] ?? 0) - (logits[a] ?? 0));
  const largest = logits[order[0] ?? 0] ?? 0;
  const hidden = order.slice(size);
  return {
    tokens: order.slice(0, size),
    logits: order.slice(0, size).map((token) => logits[token] ?? 0),
    others: hidden.length,
    othersWeight: hidden.reduce((sum, token) => sum + Math.exp((logits[token] ?? 0) - largest), 0),
  };
}

const sampling: fc.Arbitrary<Sampling> = fc.record(
  {
    temperature: fc.constantFrom(0, 0.3, 1, 1.7),
    topK: fc.constantFrom(0, 1, 3, 50),
    topP: fc.constantFrom(1, 0.9, 0.4),
    minP: fc.constantFrom(0, 0.05, 0.6),
    frequencyPenalty: fc.constantFrom(0, 0.5, -0.5),
    presencePenalty: fc.constantFrom(0, 1, -1),
    repeatPenalty: fc.constantFrom(1, 1.3, 0.8),
    xtc: fc.constantFrom({ probability: 1, threshold: 0.1 }, { probability: 0, threshold: 0.1 }),
  },
  { requiredKeys: [] },
);
const uniform = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const token = fc.nat(39);

// Once, a ban on a token outside the window left its weight in the sum, and a penalty could reorder the draw.
test("what a window decides, the whole vocabulary decides the same", () => {
  let decided = 0;
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -12, max: 6, noNaN: true }), { minLength: 40, maxLength: 40 }),
      fc.integer({ min: 1, max: 39 }),
      sampling,
      fc.array(token, { maxLength: 6 }),
      fc.dictionary(token.map(String), fc.constantFrom(-Infinity, -2, 3), { maxKeys: 4 }),
      fc.tuple(uniform, uniform),
      (logits, size, settings, generated, biases, chances) => {
        const counts = new Map<number, number>();
        for (const t of generated) counts.set(t, (counts.get(t) ?? 0) + 1);
        const history = { counts, recent: new Set(generated) };
        const bias = new Map(Object.entries(biases).map(([t, amount]) => [Number(t), amount]));
        const part = drawToken(windowOf(logits, size), settings, history, bias, chances);
        if (part === null) return;
        decided++;
        expect(part).toBe(drawToken(windowOf(logits, logits.length), settings, history, bias, chances));
      },
    ),
    { numRuns: 3000 },
  );
  expect(decided).toBeGreaterThan(150);
}, 60_000);

test("the whole vocabulary always decides, unless every token is banned", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: -50, max: 50, noNaN: true }), { minLength: 1, maxLength: 30 }),
      sampling,
      fc.tuple(uniform, uniform),
      (logits, settings, chances) => {
        expect(drawToken(windowOf(logits, logits.length), settings, nothing, noBias, chances)).not.toBeNull();
      },
    ),
  );
  expect(drawToken(windowOf([1], 1), {}, nothing, new Map([[0, -Infinity]]), [0.5, 0.5])).toBeNull();
});

test("a draw walks down the probabilities", () => {
  const window = windowOf([Math.log(0.2), Math.log(0.7), Math.log(0.1)], 3);
  const draw = (u: number, settings: Sampling = {}): number | null =>
    drawToken(window, settings, nothing, noBias, [u, 0]);
  expect([0, 0.69, 0.71, 0.89, 0.91, 0.999].map((u) => draw(u))).toEqual([1, 1, 0, 0, 2, 2]);
  expect(draw(0.999, { topP: 0.8 })).toBe(0);
  expect(draw(0.999, { topK: 1 })).toBe(1);
  expect(draw(0.999, { minP: 0.2 })).toBe(0);
  expect(draw(0, { xtc: { probability: 1, threshold: 0.15 } })).toBe(0);
  expect(draw(0.999, { temperature: 0 })).toBe(1);
});

test("a flat tail that might hold the token is not guessed at", () => {
  const logits = Array<number>(1000).fill(0);
  expect(drawToken(windowOf(logits, 10), {}, nothing, noBias, [0.5, 0])).toBeNull();
  expect(drawToken(windowOf(logits, 10), {}, nothing, noBias, [0.0055, 0])).toBe(5);
  expect(drawToken(windowOf(logits, 10), { temperature: 0.5 }, nothing, noBias, [0.5, 0])).toBeNull();
});
