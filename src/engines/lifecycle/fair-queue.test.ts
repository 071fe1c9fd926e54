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
