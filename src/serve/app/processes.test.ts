import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { coresOfQuota } from "./processes.ts";

test("a container's share of the processors", () => {
  expect(coresOfQuota("200000 100000\n")).toBe(2);
  expect(coresOfQuota("150000 100000\n")).toBe(1);
  expect(coresOfQuota("50000 100000\n")).toBe(1);
  expect(coresOfQuota("max 100000\n")).toBe(Infinity);
  expect(coresOfQuota("max")).toBe(Infinity);
  expect(coresOfQuota("")).toBe(Infinity);
});

// An unknown flag is ignored without an error.
test("V8 still has the flag with which objects are kept young", () => {
  expect(execFileSync(process.execPath, ["--v8-options"], { encoding: "utf8" })).toContain(
    "--allocation-site-pretenuring",
  );
});
