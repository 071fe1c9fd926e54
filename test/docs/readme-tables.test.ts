import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

test("the tables of README.md are what docs/comparison.json, the recordings, the sessions and the results say", () => {
  expect(execFileSync(process.execPath, ["scripts/readme-tables.mjs", "--check"], { encoding: "utf8" })).toBe("");
});
