import fc from "fast-check";
import { expect, test } from "vitest";
import { movedMessages } from "./moved-messages.ts";
import type { MessageMark } from "./prompt-outline.ts";

function marks(hashes: readonly number[]): MessageMark[] {
  return hashes.map((hash) => ({ role: "user", path: "", start: 0, hash, thoughts: 0, images: 0, length: 1 }));
}

/** The rule as it is said: each shift is tried, and each message compared. */
function slowly(known: readonly number[], asked: readonly number[], index: number): string | undefined {
  const goesOn = (knownFrom: number, askedFrom: number): boolean => {
    const former = known.slice(knownFrom);
    const now = asked.slice(askedFrom);
    const count = Math.min(former.length, now.length);
    if (count < 1 || (count === 1 && former.length > 1)) return false;
    return now.slice(0, count).every((hash, at) => hash === former[at]);
  };
  for (let by = 1; by < Math.max(known.length, asked.length) - index; by++) {
    if (goesOn(index + by, index)) return "messages-dropped";
    if (goesOn(index, index + by)) return "message-inserted";
  }
  return undefined;
}

const few = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 12 });

test("moved messages are found as by trying each shift", () => {
  fc.assert(
    fc.property(few, few, fc.nat(6), (known, asked, index) => {
      expect(movedMessages(marks(known), marks(asked), index)).toBe(slowly(known, asked, index));
    }),
  );
});

test.each([
  [[9, 1, 2, 3], [1, 2, 3], "messages-dropped"],
  [[1, 2, 3], [9, 1, 2, 3], "message-inserted"],
  [[1, 2, 3], [4, 5, 6], undefined],
])("%j, then %j: %s", (known, asked, moved) => {
  expect(movedMessages(marks(known), marks(asked), 0)).toBe(moved);
});

// Each shift was compared message by message: 5,000 messages that say the same took a third of a second, in which the model stood still.
test("messages that say the same are compared a few times each", () => {
  let looks = 0;
  const counted = (hashes: readonly number[]): MessageMark[] =>
    marks(hashes).map((mark, at) => ({
      ...mark,
      get hash() {
        looks++;
        return hashes[at] ?? 0;
      },
    }));
  const same = Array.from({ length: 2000 }, () => 1);
  expect(movedMessages(counted([2, ...same, 3]), counted([...same, 4]), 0)).toBeUndefined();
  expect(looks).toBeLessThan(20 * same.length);
});
