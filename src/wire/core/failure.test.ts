import { expect, test } from "vitest";
import { shownWarnings } from "./failure.ts";

// One request with 5,000 results of calls that nobody made wrote 5,000 warnings into the log, and its own words with them.
test("however many and however long warnings are, the log stays short", () => {
  const shown = shownWarnings(Array.from({ length: 5000 }, (_, at) => `messages.${at}: ${"x".repeat(5000)}`));
  expect(shown).toHaveLength(21);
  expect(shown.at(-1)).toBe("and 4980 more");
  expect(Math.max(...shown.map(({ length }) => length))).toBe(303);
  expect(shownWarnings(["a", "b"])).toEqual(["a", "b"]);
});
