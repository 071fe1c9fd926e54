import fc from "fast-check";
import { expect, test } from "vitest";
import { FairQueue } from "./fair-queue.ts";

function queueOf(...items: readonly string[]): FairQueue<string> {
  const queue = new FairQueue<string>();
  for (const item of items) queue.push(item, item[0]);
  return queue;
}

function taken(queue: FairQueue<string>): string[] {
  const all: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) all.push(item);
  return all;
}

test("owners take turns; the items of an owner are first in, first out", () => {
  const queue = queueOf("a1", "a2", "a3", "b1", "c1", "c2");
  expect([...queue]).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"]);
  expect(taken(queue)).toEqual(["a1", "b1", "c1", "a2", "c2", "a3"]);
});

test("without owners it is first in, first out", () => {
  const queue = new FairQueue<number>();
  for (const item of [3, 1, 2]) queue.push(item);
  expect([...queue]).toEqual([3, 1, 2]);
  expect([queue.shift(), queue.shift(), queue.shift(), queue.shift()]).toEqual([3, 1, 2, undefined]);
});

test("take() uses the turn of the owner, drop() does not", () => {
  const queue = queueOf("a1", "a2", "a3", "b1", "b2");
  queue.take("a2");
  queue.drop("b1");
  expect([queue.length, queue.lengthOf("a"), queue.lengthOf("b"), queue.lengthOf("x")]).toEqual([3, 2, 1, 0]);
  expect(taken(queue)).toEqual(["b2", "a1", "a3"]);
});

test("for random operations, an owner waits for at most one item of each other owner, and no item is lost", () => {
  const owner = fc.constantFrom("a", "b", "c", "d");
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ push: owner }) },
    { weight: 2, arbitrary: fc.constant("shift" as const) },
    { weight: 1, arbitrary: fc.record({ drop: fc.nat(20) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const queue = new FairQueue<string>();
      const waiting: string[] = [];
      /** Owner → which others had a turn since it has waited, or had its own. */
      const since = new Map<string, string[]>();
      let number = 0;
      for (const one of steps) {
        if (one === "shift") {
          const [next] = queue;
          const item = queue.shift();
          expect(item).toBe(next);
          if (item === undefined) {
            expect(waiting).toEqual([]);
            continue;
          }
          const [name = ""] = item;
          expect(item).toBe(waiting.find((other) => other[0] === name));
          waiting.splice(waiting.indexOf(item), 1);
          since.set(name, []);
          for (const other of new Set(waiting.map(([first = ""]) => first))) {
            if (other === name) continue;
            const turns = since.get(other) ?? [];
            expect(turns).not.toContain(name);
            since.set(other, [...turns, name]);
          }
        } else if ("push" in one) {
          const item = `${one.push}${number++}`;
          if (queue.lengthOf(one.push) === 0) since.set(one.push, []);
          queue.push(item, one.push);
          waiting.push(item);
        } else {
          const item = waiting[one.drop];
          if (item === undefined) continue;
          queue.drop(item);
          waiting.splice(one.drop, 1);
        }
        expect(queue.length).toBe(waiting.length);
        expect([...queue].sort()).toEqual([...waiting].sort());
      }
    }),
  );
});

test("higher tiers come first, and within a tier owners take turns", () => {
  const queue = new FairQueue<string>();
  queue.push("flex 1", "a", "flex");
  queue.push("default 1", "a");
  queue.push("priority 1", "a", "priority");
  queue.push("priority 2", "a", "priority");
  queue.push("priority 3", "b", "priority");
  const order = ["priority 1", "priority 3", "priority 2", "default 1", "flex 1"];
  expect([...queue]).toEqual(order);
  expect(taken(queue)).toEqual(order);
});

test("while requests of the highest tier never end, the others get a turn after every eight", () => {
  const queue = new FairQueue<string>();
  for (const tier of ["flex", "default"] as const) for (let at = 0; at < 3; at++) queue.push(`${tier} ${at}`, "", tier);
  const order = Array.from({ length: 40 }, (_, at) => {
    queue.push(`priority ${at}`, "", "priority");
    return queue.shift();
  });
  const turnOf = (item: string): number => order.indexOf(item);
  expect(["default 0", "flex 0", "default 1", "flex 1", "default 2", "flex 2"].map(turnOf)).toEqual([
    8, 9, 18, 19, 28, 29,
  ]);
  expect(order.filter((item) => item?.startsWith("priority"))).toHaveLength(34);
});

test("for random operations, no item waits for ever, tiers come in order otherwise, and a tier is first in, first out", () => {
  const tier = fc.constantFrom("priority" as const, "default" as const, "flex" as const);
  const tiers = ["priority", "default", "flex"];
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ push: tier }) },
    { weight: 3, arbitrary: fc.constant("shift" as const) },
    { weight: 1, arbitrary: fc.record({ drop: fc.nat(20) }) },
    { weight: 1, arbitrary: fc.record({ take: fc.nat(5) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new FairQueue<string>();
      const waiting: string[] = [];
      /** How many items were taken since an item of the tier was, or since one waits. */
      const since = new Map(tiers.map((name) => [name, 0]));
      let number = 0;
      for (const one of steps) {
        if (one === "shift" || "take" in one) {
          const before = [...queue];
          const item = one === "shift" ? queue.shift() : before[one.take];
          if (one !== "shift" && item !== undefined) queue.take(item);
          if (item === undefined) continue;
          if (one === "shift") expect(item).toBe(before[0]);
          const [name = ""] = item.split(" ");
          if (one === "shift") expect(item).toBe(waiting.find((other) => other.startsWith(name)));
          waiting.splice(waiting.indexOf(item), 1);
          const passed = tiers
            .slice(0, tiers.indexOf(name))
            .filter((higher) => waiting.some((other) => other.startsWith(higher)));
          // A lower tier is served before a higher one only after eight others.
          if (one === "shift" && passed.length > 0) expect(since.get(name)).toBeGreaterThanOrEqual(8);
          for (const other of tiers) {
            const waits = waiting.some((each) => each.startsWith(other));
            since.set(other, other === name || !waits ? 0 : (since.get(other) ?? 0) + 1);
            // Eight of higher tiers, one of the other tier that was passed over.
            if (steps.every((each) => each === "shift" || !("take" in each)))
              expect(since.get(other)).toBeLessThanOrEqual(other === "priority" ? 2 : 9);
          }
        } else if ("push" in one) {
          const item = `${one.push} ${number++}`;
          queue.push(item, "", one.push);
          waiting.push(item);
        } else {
          const item = waiting[one.drop];
          if (item === undefined) continue;
          queue.drop(item);
          waiting.splice(one.drop, 1);
        }
        expect(queue.length).toBe(waiting.length);
        const all = [...queue];
        expect(all.toSorted()).toEqual(waiting.toSorted());
        for (const name of tiers)
          expect(all.filter((item) => item.startsWith(name))).toEqual(waiting.filter((item) => item.startsWith(name)));
      }
    }),
  );
});
