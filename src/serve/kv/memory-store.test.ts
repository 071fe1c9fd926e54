import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { BoundedIndex, MemoryStore } from "./memory-store.ts";

const roomy = { maxCount: 1000, maxBytes: 1e9, maxAgeMs: 1e9 };

describe("MemoryStore", () => {
  test("a text is read from any byte on, and additions follow each other", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: "grapheme" }), { minLength: 1 }), fc.nat(), async (texts, nat) => {
        const store = new MemoryStore(roomy);
        const [first = "", ...more] = texts;
        await store.set("a", first);
        for (const text of more) expect(await store.append("a", text)).toBe(true);
        expect(await store.get("a")).toBe(texts.join(""));
        const from = nat % (texts.length + 1);
        const bytes = Buffer.byteLength(texts.slice(0, from).join(""));
        expect(await store.readFrom("a", bytes)).toEqual({
          text: texts.slice(from).join(""),
          size: Buffer.byteLength(texts.join("")),
        });
      }),
    );
    const store = new MemoryStore(roomy);
    expect(await store.append("a", "x")).toBe(false);
    expect([await store.get("a"), await store.readFrom("a", 0)]).toEqual([undefined, undefined]);
  });

  test("what additions take counts", async () => {
    const store = new MemoryStore({ ...roomy, maxBytes: 10 });
    await store.set("a", "1234");
    await store.set("b", "1234");
    await store.append("b", "5678");
    expect([await store.get("a"), await store.get("b")]).toEqual([undefined, "12345678"]);
    await store.append("b", "90123");
    expect(await store.get("b")).toBeUndefined();
  });

  test("what was asked for longest ago makes way: by number", async () => {
    const store = new MemoryStore({ ...roomy, maxCount: 2 });
    await store.set("a", "1");
    await store.set("b", "2");
    expect(await store.get("a")).toBe("1");
    await store.set("c", "3");
    expect(await Promise.all(["a", "b", "c"].map((key) => store.get(key)))).toEqual(["1", undefined, "3"]);
  });

  test("by size, in bytes of UTF-8; what is larger than all may be is not kept, and drives out nothing", async () => {
    const store = new MemoryStore({ ...roomy, maxBytes: 8 });
    await store.set("a", "ééé");
    await store.set("b", "123");
    expect(await Promise.all(["a", "b"].map((key) => store.get(key)))).toEqual([undefined, "123"]);
    await store.set("c", "123456789");
    expect(await Promise.all(["b", "c"].map((key) => store.get(key)))).toEqual(["123", undefined]);
  });

  // One client's responses of 20 MB drove out all that others had kept: the oldest went first, whoever's it was.
  test("by owner: one that stores without end loses its own, and others keep theirs", async () => {
    const store = new MemoryStore({ ...roomy, maxCount: 10, maxBytes: 1000 });
    await store.set("alice 1", "a".repeat(100));
    await store.set("carol 1", "c".repeat(200));
    for (let at = 0; at < 30; at++) await store.set(`bob ${at}`, "b".repeat(150));
    expect(await store.get("alice 1")).toBe("a".repeat(100));
    expect(await store.get("carol 1")).toBe("c".repeat(200));
    const kept = await Promise.all(Array.from({ length: 30 }, (_, at) => store.get(`bob ${at}`)));
    // 700 bytes are left for texts of 150.
    expect(kept.flatMap((text, at) => (text === undefined ? [] : [at]))).toEqual([26, 27, 28, 29]);
    for (let at = 0; at < 30; at++) await store.set(`dave ${at}`, "");
    expect(await store.get("alice 1")).toBe("a".repeat(100));
    expect(await store.get("carol 1")).toBe("c".repeat(200));
  });

  test("an owner that loses values has at least as much as any other one", async () => {
    const owner = fc.constantFrom("a", "b", "c");
    const calls = fc.array(fc.record({ owner, bytes: fc.integer({ min: 1, max: 40 }) }), { maxLength: 60 });
    await fc.assert(
      fc.property(calls, (steps) => {
        const sizes = new Map<string, number>();
        const held = new Map<string, number>();
        const ownerIn = (key: string): string => key.charAt(0);
        const index = new BoundedIndex<true>({ ...roomy, maxBytes: 100 }, ownerIn, (key) => {
          const mine = held.get(ownerIn(key)) ?? 0;
          for (const other of held.values()) expect(mine).toBeGreaterThanOrEqual(other);
          held.set(ownerIn(key), mine - (sizes.get(key) ?? 0));
        });
        for (const [at, step] of steps.entries()) {
          const key = `${step.owner} ${at}`;
          sizes.set(key, step.bytes);
          held.set(step.owner, (held.get(step.owner) ?? 0) + step.bytes);
          index.set(key, true, step.bytes);
          expect([...held.values()].reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(100);
        }
      }),
    );
  });

  test("by age, whether it is asked for or not", async () => {
    vi.useFakeTimers();
    try {
      const store = new MemoryStore({ ...roomy, maxAgeMs: 1000 });
      await store.set("a", "1");
      vi.advanceTimersByTime(600);
      expect(await store.get("a")).toBe("1");
      vi.advanceTimersByTime(600);
      expect(await store.get("a")).toBeUndefined();
    } finally {
      vi.useRealTimers();
    }
  });

  test("no sequence of calls makes it hold more than it may, or another text than the last one set", async () => {
    const key = fc.constantFrom("a", "b", "c", "d");
    const call = fc.oneof(
      fc.record({ call: fc.constant("set" as const), key, text: fc.string({ maxLength: 12, unit: "grapheme" }) }),
      fc.record({ call: fc.constantFrom("get" as const, "delete" as const), key }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 60 }), async (calls) => {
        const limits = { ...roomy, maxCount: 3, maxBytes: 20 };
        const store = new MemoryStore(limits);
        const model = new Map<string, string>();
        for (const step of calls) {
          if (step.call === "set") {
            await store.set(step.key, step.text);
            model.set(step.key, step.text);
          } else if (step.call === "delete") {
            await store.delete(step.key);
            model.delete(step.key);
          } else {
            const found = await store.get(step.key);
            if (found !== undefined) expect(found).toBe(model.get(step.key));
          }
          const held: string[] = [];
          for (const each of ["a", "b", "c", "d"]) {
            const text = await store.get(each);
            if (text !== undefined) held.push(text);
          }
          expect(held.length).toBeLessThanOrEqual(limits.maxCount);
          expect(Buffer.byteLength(held.join(""))).toBeLessThanOrEqual(limits.maxBytes);
        }
      }),
    );
  });
});
