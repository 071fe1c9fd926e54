import { expect, test } from "vitest";
import { peerPair } from "../../test/support/peer-pair.ts";
import { MemoryStore } from "../kv/memory-store.ts";
import type { Store } from "../kv/store.ts";
import { SharedStore, shareStore } from "./shared-store.ts";

const limits = { maxCount: 10, maxBytes: 1_000_000, maxAgeMs: 60_000 };

test("what one worker keeps, every worker finds and deletes; what lasts and what does not are apart", async () => {
  const lasting = new MemoryStore(limits);
  const brief = new MemoryStore(limits);
  const [first, second] = [peerPair(), peerPair()].map(({ primary, worker }) => {
    shareStore(primary, "lasting", lasting);
    shareStore(primary, "brief", brief);
    return { lasting: new SharedStore(worker, "lasting"), brief: new SharedStore(worker, "brief") };
  });
  const text = `{"text":"${"ä\u{1f600}\ud800".repeat(1000)}"}`;
  await first?.lasting.set("key", text);
  expect(await second?.lasting.get("key")).toBe(text.replaceAll("\ud800", "\ufffd"));
  expect(await second?.brief.get("key")).toBeUndefined();
  await second?.brief.set("key", "b");
  expect(await second?.lasting.delete("key")).toBe(true);
  expect(await first?.lasting.delete("key")).toBe(false);
  expect(await first?.brief.get("key")).toBe("b");
});

test("it rejects where the primary's store does, and where the primary is gone", async () => {
  const broken: Store = {
    get: () => Promise.reject(new Error("the disk is full")),
    set: () => Promise.reject(new Error("the disk is full")),
    readFrom: () => Promise.reject(new Error("the disk is full")),
    append: () => Promise.reject(new Error("the disk is full")),
    delete: () => Promise.reject(new Error("the disk is full")),
    close: async () => {},
  };
  const { primary, worker, end } = peerPair();
  shareStore(primary, "lasting", broken);
  const store = new SharedStore(worker, "lasting");
  await expect(store.set("key", "text")).rejects.toThrow("the disk is full");
  await expect(store.append("key", "text")).rejects.toThrow("the disk is full");
  const asked = store.get("key");
  end();
  await expect(asked).rejects.toThrow("ended");
  await expect(store.get("key")).rejects.toThrow("ended");
});
