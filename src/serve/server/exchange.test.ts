import fc from "fast-check";
import { expect, test } from "vitest";
import { plainPath } from "./exchange.ts";

/** By the patterns that define it. */
function byPatterns(path: string): string {
  return path
    .replace(/\/{2,}/g, "/")
    .replace(/^\/v1(?=\/|$)/, "")
    .replace(/\/$/, "");
}

test("a path is normalized as its patterns say", () => {
  const part = fc.constantFrom("/", "//", "v1", "/v1", "v", "1", "chat", "%2F", "");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      const path = parts.join("");
      expect(plainPath(path)).toBe(byPatterns(path));
    }),
    { numRuns: 1000 },
  );
});
