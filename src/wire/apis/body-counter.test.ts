import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { BodyCounter, bodyLimits } from "./body-counter.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function refusal(text: string, cuts: readonly number[] = []): string | null {
  const bytes = bytesOf(text);
  const counter = new BodyCounter();
  try {
    let from = 0;
    for (const cut of [...cuts, bytes.length]) {
      counter.add(bytes.subarray(from, cut));
      from = cut;
    }
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}

const full: Readonly<Record<keyof typeof bodyLimits, (count: number) => string>> = {
  depth: (count) => "[".repeat(count) + "]".repeat(count),
  objectsAndLists: (count) => JSON.stringify(Array.from({ length: count - 1 }, () => ({}))),
  members: (count) => JSON.stringify([Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1]))]),
  strings: (count) => JSON.stringify(Array<string>(count).fill("")),
  values: (count) => JSON.stringify(Array<number>(count).fill(1)),
};

test.each(Object.entries(bodyLimits))("%s: as many as the limit are taken, one more is refused", (name, limit) => {
  const make = full[name as keyof typeof bodyLimits];
  expect(refusal(make(limit))).toBeNull();
  expect(refusal(make(limit + 1))).toContain(`more than ${limit} `);
});

// 90,000 members of a body were put into one object, and listed twice, before it was refused: 100 ms at a time.
test("a body of more members of its own than any API knows is refused before it is read", () => {
  const own = (count: number): string =>
    JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, { a: 1 }])));
  expect(refusal(own(2000))).toBeNull();
  expect(refusal(own(2001))).toBe("The request body has more than 1000 unknown members.");
  expect(refusal(own(2001), [7, 5000])).toBe("The request body has more than 1000 unknown members.");
});

describe("for every text", () => {
  test("what stands within a string is not counted", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const long = `${text}[{",:\\`.repeat(bodyLimits.depth + 1);
        expect(refusal(JSON.stringify({ [long]: long }))).toBeNull();
      }),
      { numRuns: 50 },
    );
  });

  test("it does not matter where the text is cut into pieces", () => {
    const deep = `${'["\\"ü]",'.repeat(bodyLimits.depth + 1)}1`;
    const flat = `${'["\\"ü]"],'.repeat(bodyLimits.depth + 1)}1`;
    const cut = fc.array(fc.nat(bytesOf(deep).length), { maxLength: 20 });
    fc.assert(
      fc.property(cut, (cuts) => {
        const sorted = cuts.sort((a, b) => a - b);
        expect(refusal(deep, sorted)).toContain("levels");
        expect(refusal(`[${flat}]`, sorted)).toBeNull();
      }),
    );
  });
});
