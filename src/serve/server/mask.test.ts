import { expect, test } from "vitest";
import type { Log } from "./log.ts";
import { Mask, maskedLog } from "./mask.ts";

const secret = "sk-live-0123456789abcdef";
const mask = new Mask([secret, "http-password-1", "short"]);

test("all members of events and log lines are masked; short words are not secrets", () => {
  const error = new Error(`bad key ${secret}`);
  expect(mask.value({ a: [{ b: `x ${secret}` }], error, c: "short" })).toMatchObject({
    a: [{ b: "x [key]" }],
    c: "short",
  });
  expect(String(mask.value({ error }).error)).not.toContain(secret);
  const plain = { a: [1, "b"] };
  expect(mask.value(plain)).toBe(plain);
});

function recording(level?: string): { log: Log; lines: unknown[] } {
  const lines: unknown[] = [];
  const write = (fields: object, message: string): void => void lines.push([fields, message]);
  const isLevelEnabled = level === undefined ? {} : { isLevelEnabled: (asked: string) => asked === level };
  return { log: { debug: write, info: write, warn: write, error: write, ...isLevelEnabled }, lines };
}

test("no line shows a secret", () => {
  const { log, lines } = recording();
  maskedLog(log, () => new Mask(["secret-0123"])).info({ at: { name: "a secret-0123", n: 1 } }, "it is secret-0123");
  expect(lines).toEqual([[{ at: { name: "a [key]", n: 1 } }, "it is [key]"]]);
});

test("a line that is not written is not looked through", () => {
  const { log, lines } = recording("warn");
  const masked = maskedLog(log, () => {
    throw new Error("asked for the mask");
  });
  masked.info({}, "finished");
  expect(lines).toEqual([]);
  expect(() => masked.warn({}, "slow")).toThrow("asked for the mask");
  // The masked log did not say which levels are written: models never reported what their slots do, even with --log-level debug.
  expect(masked.isLevelEnabled?.("warn")).toBe(true);
  expect(masked.isLevelEnabled?.("debug")).toBe(false);
});
