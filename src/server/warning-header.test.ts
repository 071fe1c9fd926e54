import { expect, test } from "vitest";
import { shownWarnings, warningHeader } from "./warning-header.ts";

test("warnings are told in one header, without what a header may not hold", () => {
  expect(warningHeader(["a: ä\nb", "c"])).toEqual({ "x-truewire-warning": "a: ?b; c" });
});

// One request with 5,000 results of calls that nobody made wrote 5,000 warnings into the log, and its own words with them.
test("however many and however long they are, header and log stay short", () => {
  const warnings = Array.from({ length: 5000 }, (_, at) => `messages.${at}: ${"x".repeat(5000)}`);
  expect(warningHeader(warnings)["x-truewire-warning"]).toHaveLength(1000);
  const shown = shownWarnings(warnings);
  expect(shown).toHaveLength(21);
  expect(shown.at(-1)).toBe("and 4980 more");
  expect(Math.max(...shown.map(({ length }) => length))).toBe(303);
  expect(shownWarnings(["a", "b"])).toEqual(["a", "b"]);
});
