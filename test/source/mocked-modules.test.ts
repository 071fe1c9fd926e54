import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

// A mock has no effect on a module that an earlier file of the same worker has loaded: such a test passed or failed by the order of the files.
test("no test next to the code mocks a module: these tests share what they import", () => {
  const tests = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".test.ts"));
  expect(tests).not.toEqual([]);
  expect(tests.filter((file) => /\bvi\.(?:do)?[mM]ock\(/.test(readFileSync(join("src", file), "utf8")))).toEqual([]);
});
