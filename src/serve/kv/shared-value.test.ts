import { expect, test } from "vitest";
import { MemoryStore } from "./memory-store.ts";
import { sharedValue } from "./shared-value.ts";
import type { SharedValue } from "./shared-value.ts";
import type { Store } from "./store.ts";

const minute = 60_000;
const secret = "a secret of all instances";

/** Instances that share a store, or one that is given; each one's values are named after it. */
function instances({
  store = new MemoryStore({ maxCount: 100, maxBytes: 1e6, maxAgeMs: 1e9 }),
}: { store?: Store } = {}): {
  store: Store;
  pass: (ms: number) => void;
  open: (
    name: string,
    its?: { secret?: string; id?: string },
  ) => { get: () => Promise<SharedValue>; runs: () => number };
  failures: string[];
  fail: (why: string | undefined) => void;
} {
  let now = 1_000_000;
  let broken: string | undefined;
  const failures: string[] = [];
  return {
    store,
    failures,
    pass: (ms) => (now += ms),
    fail: (why) => (broken = why),
    open(name, its) {
      let runs = 0;
      const obtain = async (): Promise<SharedValue> => {
        runs++;
        await new Promise((resolve) => setImmediate(resolve));
        if (broken !== undefined) throw new Error(broken);
        return { value: `${name}-${runs}`, expiresAt: now + 50 * minute };
      };
      const get = sharedValue(obtain, {
        store,
        secret,
        id: "command",
        failed: (why) => failures.push(why),
        now: () => now,
        wait: async () => {
          now += 200;
          await new Promise((resolve) => setImmediate(resolve));
        },
        ...its,
      });
      return { get, runs: () => runs };
    },
  };
}

test("of instances that start at once, one obtains the value, and all have it", async () => {
  const { open } = instances();
  const all = Array.from({ length: 20 }, (_, at) => open(`i${at}`));
  const values = await Promise.all(all.map(({ get }) => get()));
  expect(new Set(values.map(({ value }) => value)).size).toBe(1);
  expect(new Set(values.map(({ expiresAt }) => expiresAt)).size).toBe(1);
  expect(all.reduce((sum, { runs }) => sum + runs(), 0)).toBe(1);
});

test("whoever renews first obtains the next value, and the others take that", async () => {
  const { open, pass } = instances();
  const [a, b] = [open("a"), open("b")];
  expect([await a.get(), await b.get()].map(({ value }) => value)).toEqual(["a-1", "a-1"]);
  pass(46 * minute);
  expect([await b.get(), await a.get()].map(({ value }) => value)).toEqual(["b-1", "b-1"]);
  pass(50 * minute);
  expect((await open("c").get()).value).toBe("c-1");
});

test("the store has neither the value nor the command, and other secrets and commands share nothing", async () => {
  const kept = new Map<string, string>();
  const { store, open, failures } = instances();
  const { set } = store;
  store.set = (key, text) => {
    kept.set(key, text);
    return set.call(store, key, text);
  };
  expect((await open("a").get()).value).toBe("a-1");
  const [key, text = ""] = [...kept].at(-1) ?? [];
  expect(`${key} ${text}` + Buffer.from(text, "base64").toString("latin1")).not.toMatch(/a-1|command|value/);
  expect((await open("b", { secret: "another secret of 16" }).get()).value).toBe("b-1");
  expect((await open("c", { id: "another command" }).get()).value).toBe("c-1");
  expect((await open("d").get()).value).toBe("a-1");
  expect(failures).toEqual([]);
});

test("a stored value that was changed is not taken", async () => {
  const { store, open, failures } = instances();
  const names: string[] = [];
  const { set } = store;
  store.set = (key, text) => {
    names.push(key);
    return set.call(store, key, text);
  };
  await open("a").get();
  store.set = set;
  for (const text of ["AAAA", Buffer.alloc(200).toString("base64"), "not base 64"]) {
    await set.call(store, names.at(-1) ?? "", text);
    expect((await open("b").get()).value).toBe("b-1");
  }
  expect(new Set(failures)).toEqual(new Set(["the stored credential was not written by an instance with this secret"]));
});

test("an instance that fails, or stops, does not hold up the others", async () => {
  const { store, open, fail } = instances();
  fail("no login");
  const [a, b] = [open("a"), open("b")];
  const outcomes = await Promise.allSettled([a.get(), b.get()]);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  fail(undefined);
  // Claims its turn, and never comes back.
  const { delete: remove, set } = store;
  store.set = () => new Promise(() => {});
  void open("stopped").get();
  await new Promise((resolve) => setImmediate(resolve));
  Object.assign(store, { delete: remove, set });
  expect((await b.get()).value).toBe("b-2");
});

test("where the store cannot be reached, each instance obtains its own, and says so once", async () => {
  const away = (): Promise<never> => Promise.reject(new Error("the store is away"));
  const store: Store = { get: away, set: away, readFrom: away, append: away, delete: away, close: async () => {} };
  const { open, failures } = instances({ store });
  const [a, b] = [open("a"), open("b")];
  expect([await a.get(), await b.get()].map(({ value }) => value)).toEqual(["a-1", "b-1"]);
  expect(failures).toEqual(["the store is away", "the store is away"]);
});
