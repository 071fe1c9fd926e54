import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const settings = /\b(?:test|hook)Timeout\b|\btimeout(?::| =) *\d/;
/** A number after the function of a test or hook. */
const argument = /^( *)(?:test|it|beforeAll|beforeEach|afterAll|afterEach)\b(?:.*, \d+\);|[^]*?^\1\}, [\d_]+\);)$/m;

// Four files had a shorter time-out than all others; on a busy machine, tests failed although nothing was wrong.
test("no test has a time-out of its own: that of `support/hang.ts` is for all", () => {
  const files = ["src", "test"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .map((file) => join(folder, file))
      .filter((file) => file.endsWith(".test.ts") || /^test\b.*\.ts$/.test(file)),
  );
  expect(files.length).toBeGreaterThan(500);
  const own = files.filter((file) => {
    const text = readFileSync(file, "utf8");
    return settings.test(text) || argument.test(text);
  });
  expect(own).toEqual([]);
});
