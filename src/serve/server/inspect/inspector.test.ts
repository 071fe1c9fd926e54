import fc from "fast-check";
import { expect, test } from "vitest";
import type { HttpExchange } from "../exchange.ts";
import { Mask } from "../mask.ts";
import { RequestRecord } from "../request-record.ts";
import { WatchedRequest } from "./watched-request.ts";
import { Inspector, Ring } from "./inspector.ts";
import type { RingEntry } from "./inspector.ts";

/** Adds a thing, or lets one of those that were added grow. */
const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("add" as const) }),
    fc.record({ kind: fc.constant("grow" as const), which: fc.nat(), bytes: fc.integer({ min: -20, max: 80 }) }),
  ),
  { maxLength: 120 },
);

test("never takes more than its room, and keeps the newest", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), steps, (maxBytes, taken) => {
      const ring = new Ring<number>(maxBytes);
      const places: RingEntry<number>[] = [];
      for (const step of taken) {
        if (step.kind === "add") places.push(ring.add(places.length));
        else {
          const place = places[step.which % Math.max(1, places.length)];
          if (place) ring.grow(place, Math.max(step.bytes, -place.bytes));
        }
        expect(ring.bytes).toBeLessThanOrEqual(maxBytes);
        const kept = [...ring.values()];
        // Without a gap, up to the newest.
        expect(kept).toEqual(places.map(({ value }) => value).slice(places.length - kept.length));
        expect(kept.length + ring.dropped).toBe(places.length);
        const held = places.slice(places.length - kept.length).reduce((sum, { bytes }) => sum + bytes, 0);
        expect(ring.bytes).toBe(held);
      }
    }),
  );
});

test("what was dropped may grow on and takes nothing", () => {
  const ring = new Ring<string>(100);
  const first = ring.add("first");
  ring.grow(first, 60);
  const second = ring.add("second");
  ring.grow(second, 60);
  ring.grow(first, 1000);
  expect([...ring.values()]).toEqual(["second"]);
  expect(ring.bytes).toBe(60);
});

// Short answers came a thousand times a second, all were kept, and a gateway spent twice the CPU time on each.
test("of a burst of short requests, the texts of 500 are kept, and then of 50 per second", () => {
  let now = 0;
  const inspector = new Inspector(1024 * 1024 * 1024, () => now);
  const exchange = { method: "POST", path: "/v1/chat/completions", header: () => undefined, headers: () => [] };
  const kept = (count: number): number =>
    Array.from({ length: count }, () =>
      inspector.watch(exchange as unknown as HttpExchange, "req", new RequestRecord(), new Mask([])),
    ).filter((watched) => watched instanceof WatchedRequest).length;
  expect(kept(1000)).toBe(500);
  now += 1000;
  expect(kept(1000)).toBe(50);
  now += 60_000;
  expect(kept(1000)).toBe(500);
});

// Keeping the texts of a burst took more CPU time than answering it, and dropped each of them within seconds.
test("of a burst, texts are kept for half of the limit, and then for an eighth of it per second", async () => {
  let now = 0;
  const inspector = new Inspector(1024 * 1024, () => now);
  const exchange = { method: "POST", path: "/v1/chat/completions", header: () => undefined, headers: () => [] };
  const keepsTexts = (): boolean => {
    const watched = inspector.watch(exchange as unknown as HttpExchange, "req", new RequestRecord(), new Mask([]));
    if (watched instanceof WatchedRequest) watched.body(new Uint8Array(30 * 1024));
    return watched?.shown().brief !== true;
  };
  const kept = Array.from({ length: 100 }, keepsTexts).filter(Boolean).length;
  expect(kept).toBeGreaterThan(10);
  expect(kept).toBeLessThan(20);
  now += 1000;
  expect(Array.from({ length: 5 }, keepsTexts)).toContain(true);
  expect((await inspector.list(() => true)).requests).toHaveLength(105);
});

// The summaries of a burst of 16,000 requests were made at once, and nothing else was served for a tenth of a second or more.
test("the first look at many requests lets others have their turn, and lists all", async () => {
  const inspector = new Inspector(1024 * 1024 * 1024);
  const exchange = { method: "POST", path: "/v1/chat/completions", header: () => undefined, headers: () => [] };
  const count = 20_000;
  for (let made = 0; made < count; made++)
    inspector.watch(exchange as unknown as HttpExchange, `req_${made}`, new RequestRecord(), new Mask([]));
  let others = 0;
  const listed = inspector.list(() => true);
  const other = setInterval(() => others++, 0);
  const { requests } = await listed;
  clearInterval(other);
  expect(requests.map(({ number }) => number)).toEqual(Array.from({ length: count }, (_, at) => at + 1));
  expect(others).toBeGreaterThan(0);
});
