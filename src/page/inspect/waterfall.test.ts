import fc from "fast-check";
import { expect, test } from "vitest";
import type { RequestSummary } from "../../judge/inspect/inspected-request.ts";
import { barsOf, timeAxis } from "./waterfall.ts";

function request(at: number, ms: number, more: Partial<RequestSummary> = {}): RequestSummary {
  const id = `req_${at}`;
  return { id, number: at, at, ms, method: "POST", path: "/v1/chat/completions", outcome: "finished", ...more };
}

const requests = fc.array(
  fc.record({
    at: fc.integer({ min: 0, max: 1_000_000 }),
    ms: fc.integer({ min: 0, max: 60_000 }),
    first: fc.option(fc.integer({ min: 0, max: 70_000 }), { nil: undefined }),
    phases: fc.option(
      fc.record({ preparing: fc.nat(500), queue: fc.nat(5000), prefill: fc.nat(20_000), generation: fc.nat(60_000) }),
      { nil: undefined },
    ),
  }),
  { minLength: 1, maxLength: 30 },
);

test("phases follow each other and end with the request", () => {
  fc.assert(
    fc.property(requests, (given) => {
      const bars = barsOf(
        given.map(({ at, ms, first, phases }) =>
          request(at, ms, { ...(first !== undefined && { first_ms: first }), ...(phases && { phases }) }),
        ),
        0,
      );
      for (const { start, end, phases, gap } of bars) {
        const sum = phases.reduce((total, { ms }) => total + ms, 0);
        expect(sum).toBeCloseTo(end - start, 1);
        expect(gap).toBeGreaterThanOrEqual(0);
      }
      expect(bars.map(({ start }) => start)).toEqual(bars.map(({ start }) => start).toSorted((a, b) => a - b));
    }),
  );
});

test("a time that is later is never further left, and all times are on the axis", () => {
  fc.assert(
    fc.property(requests, fc.boolean(), (given, shorten) => {
      const bars = barsOf(
        given.map(({ at, ms }) => request(at, ms)),
        0,
      );
      const axis = timeAxis(bars, shorten);
      const times = bars.flatMap(({ start, end }) => [start, end]).toSorted((a, b) => a - b);
      const positions = times.map(axis.position);
      for (const [at, position] of positions.entries()) {
        expect(position).toBeGreaterThanOrEqual((positions[at - 1] ?? 0) - 1e-9);
        expect(position).toBeLessThanOrEqual(1);
      }
      if ((times.at(-1) ?? 0) > 1) expect(positions.at(-1)).toBeCloseTo(1, 6);
    }),
  );
});

test("what is not known before the first token is one phase; an answer as a whole has no first token", () => {
  const [stream, whole, local] = barsOf(
    [
      request(1, 1000, { first_ms: 300 }),
      request(2, 500),
      request(3, 1000, { first_ms: 300, phases: { preparing: 0, queue: 100, prefill: 200, generation: 600 } }),
    ],
    0,
  );
  expect(stream?.phases).toEqual([
    { name: "first token", ms: 300 },
    { name: "generation", ms: 700 },
  ]);
  expect(whole?.phases).toEqual([{ name: "whole", ms: 500 }]);
  expect(local?.phases).toEqual([
    { name: "queue", ms: 100 },
    { name: "prefill", ms: 200 },
    { name: "generation", ms: 600 },
    { name: "other", ms: 100 },
  ]);
});

test("a pause of minutes takes a tenth of the time of the requests", () => {
  const bars = barsOf([request(0, 1000), request(601_000, 1000)], 0);
  expect(bars[1]?.gap).toBe(600_000);
  expect(timeAxis(bars, false).position(1000)).toBeLessThan(0.01);
  const { position, shortened } = timeAxis(bars, true);
  expect(shortened).toEqual([{ start: 1000, end: 601_000 }]);
  expect(position(1000)).toBeCloseTo(1000 / 2200);
  expect(position(601_000)).toBeCloseTo(1200 / 2200);
});

test("an open request lasts until now", () => {
  const [bar] = barsOf([request(1000, 50, { outcome: "open" })], 5000);
  expect(bar).toMatchObject({ end: 4000, phases: [{ name: "first token", ms: 4000 }] });
});
