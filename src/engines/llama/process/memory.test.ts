import { expect, test } from "vitest";
import { benefitsFromUnified, hasRoomForWeights } from "./memory.ts";

const plain = { needsCheckpoints: false };
const enough = { contextSize: 1000, capacity: 4000 };

// Up to four slots always shared one KV cache, and each token passed over the cells of all.
test("slots of a processor have a KV cache each, if the memory is enough for that", () => {
  expect(benefitsFromUnified(plain, enough, 4, false)).toBe(false);
  expect(benefitsFromUnified(plain, { ...enough, capacity: 3996 }, 4, false)).toBe(true);
});

test("one slot, a GPU, and a memory that needs checkpoints have one KV cache", () => {
  expect(benefitsFromUnified(plain, { ...enough, capacity: 1000 }, 1, false)).toBe(true);
  expect(benefitsFromUnified(plain, enough, 4, true)).toBe(true);
  expect(benefitsFromUnified({ needsCheckpoints: true }, enough, 4, false)).toBe(true);
});

// Their file was mapped, and each token passed over its small pages.
test("on Linux, weights are read into memory if that leaves room for the file in the system's cache", () => {
  expect(hasRoomForWeights(700, 300, false, 1000)).toBe(process.platform === "linux");
  expect(hasRoomForWeights(701, 300, false, 1000)).toBe(false);
  expect(hasRoomForWeights(700, 300, true, 1000)).toBe(false);
});
