import { expect, test, vi } from "vitest";
import type { KeptTurn } from "../../wire/core/turn-memory.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import type { Store } from "../kv/store.ts";
import { silentLog } from "./log.ts";
import type { Log } from "./log.ts";
import { StoredTurns } from "./stored-turns.ts";

const limits = { maxCount: 1000, maxBytes: 1024 * 1024, maxTurnBytes: 64 * 1024, maxAgeMs: 60_000 };

function turnOf(value: string): KeptTurn {
  return { parts: [{ type: "tool-call", id: "call_1", state: { kind: "call", value: { sealed: value } } }] };
}

function withWarnings(): { readonly log: Log; readonly warnings: string[] } {
  const warnings: string[] = [];
  return { warnings, log: { ...silentLog, warn: (_, line) => warnings.push(line) } };
}

/** A store whose calls wait, fail or are counted. */
class WatchedStore implements Store {
  readonly #inner = new MemoryStore(limits);
  gets = 0;
  sets = 0;
  error: Error | undefined;
  held: Promise<void> | undefined;
  isClosed = false;

  async get(key: string): Promise<string | undefined> {
    this.gets++;
    await this.held;
    if (this.error) throw this.error;
    return this.#inner.get(key);
  }
  async set(key: string, text: string): Promise<void> {
    this.sets++;
    await this.held;
    if (this.error) throw this.error;
    await this.#inner.set(key, text);
  }
  readFrom: Store["readFrom"] = (key, from) => this.#inner.readFrom(key, from);
  append: Store["append"] = (key, text) => this.#inner.append(key, text);
  delete: Store["delete"] = (key) => this.#inner.delete(key);
  async close(): Promise<void> {
    this.isClosed = true;
  }
}

/** The turns of one process that shares a store. */
function sharing(store: Store, log: Log = silentLog, own = limits): StoredTurns {
  const turns = new StoredTurns(own, true, log);
  turns.use(store);
  return turns;
}

/** Resolves when a memory has written all that it keeps. */
async function written(turns: StoredTurns): Promise<void> {
  await turns.close(60_000);
}

test("a turn is found under each of its keys, at once, by its owner only", () => {
  const turns = new StoredTurns(limits, false, silentLog);
  expect(turns.mayHave("alice")).toBe(false);
  turns.keep("alice", ["call_1", "call_2", "d".repeat(1000)], turnOf("A"));
  turns.keep(undefined, ["call_1"], turnOf("everyone"));
  expect(turns.mayHave("alice")).toBe(true);
  for (const key of ["call_1", "call_2", "d".repeat(1000)]) expect(turns.find("alice", [key])).toEqual(turnOf("A"));
  expect(turns.find("alice", ["none", "call_2"])).toEqual(turnOf("A"));
  expect(turns.find(undefined, ["call_1"])).toEqual(turnOf("everyone"));
  // Names that differ only in what a key of a store may not contain, or that look like no name.
  for (const other of ["", "-", "@alice", "alice turn.key.call_1", "Alice", "bob"]) {
    expect(turns.mayHave(other)).toBe(false);
    expect(turns.find(other, ["call_1", "call_2"])).toBeUndefined();
  }
  expect(turns.counts).toMatchObject({ kept: 2, found: 5, missing: 6 });
});

test("keys that several turns have lead to the newest one, and the other keys to their own turn", () => {
  const turns = new StoredTurns(limits, false, silentLog);
  turns.keep("a", ["call_0", "first"], turnOf("1"));
  turns.keep("a", ["call_0", "second"], turnOf("2"));
  expect(turns.find("a", ["call_0"])).toEqual(turnOf("2"));
  expect(turns.find("a", ["first"])).toEqual(turnOf("1"));
  expect(turns.find("a", ["second"])).toEqual(turnOf("2"));
});

test("bytes, number, age and the size of one turn are bounded; an owner with little loses nothing to one with much", () => {
  vi.useFakeTimers();
  try {
    const turns = new StoredTurns({ ...limits, maxBytes: 100_000 }, false, silentLog);
    turns.keep("small", ["call"], turnOf("kept"));
    for (let i = 0; i < 500; i++) turns.keep("large", [`call_${i}`, `digest_${i}`], turnOf("x".repeat(2000)));
    expect(turns.find("large", ["call_499"])).toBeDefined();
    expect(turns.find("large", ["call_0", "digest_0"])).toBeUndefined();
    const found = Array.from({ length: 500 }, (_, i) => turns.find("large", [`digest_${i}`])).filter(Boolean).length;
    expect(found).toBeGreaterThan(20);
    expect(found).toBeLessThan(50);
    expect(turns.counts.evictedBytes).toBeGreaterThan(800_000);
    expect(turns.find("small", ["call"])).toEqual(turnOf("kept"));
    turns.keep("small", ["huge"], turnOf("x".repeat(limits.maxTurnBytes)));
    expect(turns.find("small", ["huge"])).toBeUndefined();
    vi.advanceTimersByTime(limits.maxAgeMs + 1);
    expect(turns.find("small", ["call"])).toBeUndefined();
    const few = new StoredTurns({ ...limits, maxCount: 10 }, false, silentLog);
    for (let i = 0; i < 30; i++) few.keep("a", [`call_${i}`], turnOf("x"));
    expect(Array.from({ length: 30 }, (_, i) => few.find("a", [`call_${i}`])).filter(Boolean)).toHaveLength(10);
  } finally {
    vi.useRealTimers();
  }
});

test("processes that share a store find each other's turns, and after a restart", async () => {
  const store = new WatchedStore();
  const [one, other] = [sharing(store), sharing(store)];
  one.keep("a", ["call_1", "call_2"], turnOf("A"));
  await written(one);
  expect(other.mayHave("a")).toBe(true);
  expect(await other.find("a", ["call_2"])).toEqual(turnOf("A"));
  // What was found is here now.
  const { gets } = store;
  expect(other.find("a", ["call_2"])).toEqual(turnOf("A"));
  expect(store.gets).toBe(gets);
  const restarted = sharing(store);
  expect(await restarted.find("a", ["none", "call_1"])).toEqual(turnOf("A"));
  expect(await restarted.find("b", ["call_1"])).toBeUndefined();
  expect(await restarted.find(undefined, ["call_1"])).toBeUndefined();
});

test("an owner without turns costs one question for all requests of a short time, and is believed to have some after it", async () => {
  vi.useFakeTimers();
  try {
    const store = new WatchedStore();
    const [one, other] = [sharing(store), sharing(store)];
    expect(one.mayHave("a")).toBe(true);
    expect(await one.find("a", ["call_1"])).toBeUndefined();
    expect(store.gets).toBe(1);
    for (let i = 0; i < 100; i++) {
      expect(one.mayHave("a")).toBe(false);
      expect(one.find("a", [`call_${i}`])).toBeUndefined();
    }
    expect(store.gets).toBe(1);
    other.keep("a", ["call_1"], turnOf("A"));
    await written(other);
    vi.advanceTimersByTime(250);
    expect(one.mayHave("a")).toBe(true);
    expect(await one.find("a", ["call_1"])).toEqual(turnOf("A"));
  } finally {
    vi.useRealTimers();
  }
});

test("a turn that was missing twice is not looked for in the store for a time, unless this process keeps it", async () => {
  const store = new WatchedStore();
  const [one, other] = [sharing(store), sharing(store)];
  other.keep("a", ["some"], turnOf("A"));
  await written(other);
  // It may be on its way when it is looked for first.
  expect(await one.find("a", ["late", "second"])).toBeUndefined();
  other.keep("a", ["late"], turnOf("B"));
  await written(other);
  expect(await one.find("a", ["late", "second"])).toEqual(turnOf("B"));
  for (let i = 0; i < 2; i++) expect(await one.find("a", ["never", "second"])).toBeUndefined();
  const { gets } = store;
  for (let i = 0; i < 100; i++) expect(one.find("a", ["never", "second"])).toBeUndefined();
  expect(store.gets).toBe(gets);
  one.keep("a", ["never"], turnOf("C"));
  expect(one.find("a", ["never", "second"])).toEqual(turnOf("C"));
});

test("a store that fails costs what it would have kept, one line of the log, and no request", async () => {
  const store = new WatchedStore();
  const { log, warnings } = withWarnings();
  const [one, other] = [sharing(store, log), sharing(store, silentLog)];
  store.error = new Error("the store is down");
  for (let i = 0; i < 20; i++) one.keep("a", [`call_${i}`], turnOf("A"));
  expect(await one.find("a", ["elsewhere"])).toBeUndefined();
  expect(one.find("a", ["call_3"])).toEqual(turnOf("A"));
  expect(await other.find("a", ["call_3"])).toBeUndefined();
  await written(one);
  expect(warnings).toHaveLength(1);
  // It is back, and then fails again: that is another line.
  store.error = undefined;
  one.keep("a", ["late"], turnOf("B"));
  await written(one);
  expect(await other.find("a", ["late"])).toEqual(turnOf("B"));
  store.error = new Error("the store is down");
  one.keep("a", ["later"], turnOf("C"));
  await written(one);
  expect(warnings).toHaveLength(2);
});

test("a slow store delays nothing and takes a bounded amount of memory; a stop waits for it within its grace", async () => {
  const store = new WatchedStore();
  const { log, warnings } = withWarnings();
  const turns = sharing(store, log, { ...limits, maxBytes: 64 * 1024 * 1024, maxTurnBytes: 1024 * 1024 });
  let release = (): void => {};
  store.held = new Promise((resolve) => (release = resolve));
  for (let i = 0; i < 100; i++) turns.keep("a", [`call_${i}`], turnOf("x".repeat(500_000)));
  // Only what fits among the writes that wait is written.
  expect(warnings).toEqual(["turns are kept in this process only"]);
  expect(turns.find("a", ["call_99"])).toBeDefined();
  await turns.close(0);
  expect(warnings.at(-1)).toBe("turns could not be stored before the server stopped");
  expect(store.isClosed).toBe(true);
  release();
  const [before, after] = [sharing(store), sharing(store)];
  store.held = new Promise((resolve) => (release = resolve));
  before.keep("a", ["last"], turnOf("A"));
  const closed = before.close(60_000);
  release();
  await closed;
  expect(await after.find("a", ["last"])).toEqual(turnOf("A"));
});

test("a request does not wait for a store that hangs", async () => {
  vi.useFakeTimers();
  try {
    const store = new WatchedStore();
    store.held = new Promise(() => {});
    const turns = sharing(store);
    const found = turns.find("a", ["call_1"]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(await found).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

test("a text of another shape, or an end of one, is no turn", async () => {
  const store = new MemoryStore(limits);
  const turns = sharing(store);
  turns.keep("a", ["call_0"], turnOf("A"));
  await written(turns);
  for (const text of ["", "null", "[]", '{"at":1}', '{"parts":1}', '{"id":"turn.key.none"}', '{"id":7}', '{"parts":[{'])
    await store
      .set("@a turn.key.bad", text)
      .then(async () => expect(await sharing(store).find("a", ["bad"])).toBeUndefined());
  // Two entries that refer to each other.
  await store.set("@a turn.key.one", '{"id":"turn.key.two"}');
  await store.set("@a turn.key.two", '{"id":"turn.key.one"}');
  expect(await sharing(store).find("a", ["one"])).toBeUndefined();
});
