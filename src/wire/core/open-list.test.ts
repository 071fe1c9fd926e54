import { expect, test } from "vitest";
import { OpenList } from "./open-list.ts";

interface Item {
  readonly name: string;
  place: number;
}

test("contains what was added and not removed, for every order of both", () => {
  const all: Item[] = ["a", "b", "c", "d"].map((name) => ({ name, place: -1 }));
  /** Every sequence of six additions and removals (of an item that is present, too: that has no effect). */
  const steps = all.flatMap((item) => [
    { item, adds: true },
    { item, adds: false },
  ]);
  for (let run = 0; run < steps.length ** 6; run += 7) {
    for (const item of all) item.place = -1;
    const list = new OpenList<Item>();
    const expected = new Set<Item>();
    let left = run;
    for (let at = 0; at < 6; at++, left = Math.floor(left / steps.length)) {
      const step = steps[left % steps.length];
      if (!step) continue;
      const { item, adds } = step;
      if (adds) {
        list.add(item);
        expected.add(item);
      } else {
        list.delete(item);
        expected.delete(item);
      }
    }
    const names = [...list].map(({ name }) => name).sort();
    if (
      list.size !== expected.size ||
      names.join() !==
        [...expected]
          .map(({ name }) => name)
          .sort()
          .join()
    )
      expect.fail(`run ${run}: ${names.join()}`);
    for (const item of all) if ((item.place === -1) === expected.has(item)) expect.fail(`run ${run}: ${item.name}`);
  }
});

test("items may be removed while they are iterated over", () => {
  const items: Item[] = ["a", "b", "c"].map((name) => ({ name, place: -1 }));
  const list = new OpenList<Item>();
  for (const item of items) list.add(item);
  const seen: string[] = [];
  for (const item of list) {
    seen.push(item.name);
    list.delete(item);
  }
  expect(seen).toEqual(["a", "b", "c"]);
  expect(list.size).toBe(0);
});
