import { expect, test } from "vitest";
import { coresOfQuota } from "./usable-cores.ts";

/** A gateway with half a core of a large machine started a worker for each of the machine's cores. */
test("a container's share of the processors", () => {
  expect(coresOfQuota("200000 100000\n")).toBe(2);
  expect(coresOfQuota("150000 100000\n")).toBe(1);
  expect(coresOfQuota("50000 100000\n")).toBe(1);
  expect(coresOfQuota("max 100000\n")).toBe(Infinity);
  expect(coresOfQuota("max")).toBe(Infinity);
  expect(coresOfQuota("")).toBe(Infinity);
});
