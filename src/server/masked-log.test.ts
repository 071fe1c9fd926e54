import { expect, test } from "vitest";
import type { Log } from "./log.ts";
import { Mask } from "./mask.ts";
import { maskedLog } from "./masked-log.ts";

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
});
