import { expect, test } from "vitest";
import { retryAfterSeconds } from "./transport-failure.ts";

const now = Date.parse("2026-11-23T00:00:00Z");
const day = 24 * 60 * 60;

// An upstream's 10^20 was passed on: a client that believes it never asks again.
test.each<[Record<string, string>, number | undefined]>([
  [{ "retry-after": "7" }, 7],
  [{ "retry-after": "-7" }, 0],
  [{ "retry-after": "100000000000000000000" }, day],
  [{ "retry-after": "1e300" }, day],
  [{ "retry-after": "Infinity" }, day],
  [{ "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" }, day],
  [{ "retry-after": "Mon, 23 Nov 2026 00:01:00 GMT" }, 60],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after-ms": "1500" }, 1.5],
  [{ "retry-after-ms": "1e30" }, day],
  [{ "retry-after-ms": "soon", "retry-after": "7" }, 7],
  [{}, undefined],
])("%j means %s seconds", (headers, seconds) => {
  expect(retryAfterSeconds(headers, now)).toBe(seconds);
});
