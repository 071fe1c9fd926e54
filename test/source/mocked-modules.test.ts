import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

// A mock has no effect on a module that an earlier file of the same worker has loaded: such a test passed or failed by the order of the files.
const mocks = (file: string): boolean => /\bvi\.(?:do)?[mM]ock\(/.test(readFileSync(file, "utf8"));
const testsIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => join(folder, file).replaceAll("\\", "/"));

test("no test next to the code mocks a module: these tests share what they import", () => {
  expect(testsIn("src")).not.toEqual([]);
  expect(testsIn("src").filter(mocks)).toEqual([]);
});

// What Node loads from the build by itself sees no mock.
test("each test in test/ that mocks a module is one that vitest.config.ts gives the modules of src/ one by one", () => {
  const config = readFileSync("vitest.config.ts", "utf8");
  const mocking = testsIn("test").filter(mocks);
  expect(mocking).not.toEqual([]);
  expect(mocking.filter((file) => !config.includes(`"${file}"`))).toEqual([]);
});
