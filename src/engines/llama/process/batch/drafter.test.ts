import fc from "fast-check";
import { expect, test, describe } from "vitest";
import { Drafter, NGramIndex } from "./drafter.ts";

describe("drafts", () => {
  const never = (): boolean => false;

  function after(tokens: readonly number[], prompt = tokens.length): Drafter {
    const drafter = new Drafter({ prompt });
    while (!drafter.read(tokens));
    return drafter;
  }

  test("the draft continues as the text did after the last occurrence of the same tokens", () => {
    const text = [1, 2, 3, 4, 1, 2, 5, 6, 7, 8, 1, 2];
    expect(after(text).draft(4, never).tokens).toEqual([5, 6, 7, 8]);
    expect(after([1, 2, 3]).draft(4, never).tokens).toEqual([]);
  });

  test("a match of four tokens is preferred to one of two", () => {
    const text = [1, 2, 3, 4, 50, 9, 3, 4, 60, 8, 1, 2, 3, 4];
    expect(after(text).draft(1, never).tokens).toEqual([50]);
  });

  test("a text that repeats itself is continued with its own draft", () => {
    expect(after([9, 1, 2, 3, 1, 2, 3]).draft(5, never).tokens).toEqual([1, 2, 3, 1, 2]);
  });

  test("a prediction is drafted first, and again after a difference", () => {
    const prediction = [10, 11, 12, 13, 14, 15, 16];
    const drafter = new Drafter({ prompt: 3, prediction });
    drafter.read([1, 2, 3]);
    expect(drafter.draft(3, never)).toMatchObject({ tokens: [10, 11, 12], isPredicted: true });
    drafter.read([1, 2, 3, 10, 99]);
    expect(drafter.draft(3, never).tokens).toEqual([]);
    drafter.read([1, 2, 3, 10, 99, 13, 14]);
    expect(drafter.draft(3, never)).toMatchObject({ tokens: [15, 16, 1], isPredicted: true });
  });

  test("a draft ends before a token that ends the answer", () => {
    expect(after([1, 2, 3, 99, 4, 1, 2]).draft(5, (token) => token === 99).tokens).toEqual([3]);
  });

  test("accepted drafts raise the probability, rejected ones lower it", () => {
    const period = [1, 2, 3, 4, 5];
    const text: number[] = [];
    const right = new Drafter({ prompt: 0 });
    for (let i = 0; i < 200; i++) {
      text.push(period[i % 5] ?? 0);
      right.read(text);
    }
    expect(right.draft(10, never).probabilities.at(-1)).toBeGreaterThan(0.8);
    // Two tokens that are always followed by another one.
    const misled: number[] = [];
    const wrong = new Drafter({ prompt: 0 });
    for (let i = 0; i < 200; i++) {
      misled.push(1, 2, 1000 + i);
      wrong.read(misled);
    }
    misled.push(1, 2);
    wrong.read(misled);
    expect(wrong.draft(10, never).tokens).toEqual([]);
  });

  test("for every text, drafts are tokens of it, and probabilities fall", () => {
    const texts = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 120 });
    fc.assert(
      fc.property(texts, fc.nat({ max: 120 }), fc.nat({ max: 20 }), (text, prompt, most) => {
        const drafter = new Drafter({ prompt: Math.min(prompt, text.length) });
        const heard: number[] = [];
        for (const token of text) {
          heard.push(token);
          drafter.read(heard);
          const { tokens, probabilities } = drafter.draft(most, never);
          expect(tokens.length).toBeLessThanOrEqual(most);
          expect(probabilities).toHaveLength(tokens.length);
          expect(probabilities.every((chance, i) => chance > 0 && chance <= (probabilities[i - 1] ?? 1))).toBe(true);
          if (tokens.length > 0) expect(standsBefore(heard, tokens)).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  /** The last two tokens with these behind them stand further ahead, or run on from there into themselves. */
  function standsBefore(text: readonly number[], draft: readonly number[]): boolean {
    const whole = [...text, ...draft];
    const row = [...text.slice(-2), ...draft];
    for (let at = 0; at < text.length - 2; at++) if (row.every((token, i) => whole[at + i] === token)) return true;
    return false;
  }

  test("a long prompt is indexed in several calls", () => {
    const text = Array.from({ length: 20_000 }, (_, i) => i % 700);
    const drafter = new Drafter({ prompt: text.length });
    expect(drafter.read(text)).toBe(false);
    while (!drafter.read(text));
    expect(drafter.draft(2, never).tokens).toEqual([20_000 % 700, (20_000 % 700) + 1]);
  });
});

describe("the n-gram index", () => {
  /** The position after the latest earlier n-gram that is the same as the one before `end`. */
  function searched(text: readonly number[], size: number, end: number): number | undefined {
    for (let other = end - 1; other >= size; other--)
      if (text.slice(other - size, other).every((token, i) => token === text[end - size + i])) return other;
    return undefined;
  }

  test("finds what a search of the whole text finds", () => {
    // Few different tokens, so that n-grams are repeated; many texts, so that the table grows.
    const token = fc.oneof(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 200_000 }));
    fc.assert(
      fc.property(fc.array(token, { maxLength: 700, size: "max" }), fc.integer({ min: 1, max: 5 }), (text, size) => {
        const index = new NGramIndex(text, size);
        for (let end = 0; end <= text.length; end++) {
          const expected = end < size ? undefined : searched(text, size, end);
          expect(index.add(end)).toBe(expected);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a growing text is read up to the positions that were added", () => {
    const text: number[] = [];
    const index = new NGramIndex(text, 2);
    const found = [7, 8, 9, 7, 8, 7, 8].map((token) => index.add(text.push(token)));
    expect(found).toEqual([undefined, undefined, undefined, undefined, 2, undefined, 5]);
  });

  test("a token costs the same in a long text as in a short one", () => {
    const steps = (length: number): number => {
      let looks = 0;
      const text = Array.from({ length }, (_, i) => (i * 7919) % 50_021);
      const counted = new Proxy(text, {
        get(target, name, receiver) {
          if (name !== "length") looks++;
          return Reflect.get(target, name, receiver) as unknown;
        },
      });
      const index = new NGramIndex(counted, 3);
      for (let end = 0; end <= length; end++) index.add(end);
      return looks / length;
    };
    expect(steps(20_000)).toBeLessThan(2 * steps(1000) + 10);
  });
});
