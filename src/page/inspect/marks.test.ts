import fc from "fast-check";
import { expect, test } from "vitest";
import { promptMarks, repairMarks } from "./marks.ts";

test("a prompt's control tokens and quotes are marked, and the cache ends between two tokens", () => {
  const prompt = {
    text: "<s>user Hi</s>",
    lengths: [3, 4, 1, 2, 4],
    control: [0, 4],
    quotes: [{ start: 8, end: 10, role: "user" }],
  };
  const { marks, cachedEnd } = promptMarks(prompt, 3);
  expect(marks.map(({ start, end }) => prompt.text.slice(start, end))).toEqual(["<s>", "</s>", "Hi"]);
  expect(cachedEnd).toBe(8);
  expect(promptMarks(prompt, 5).cachedEnd).toBe(14);
  expect(promptMarks(prompt, undefined).cachedEnd).toBeUndefined();
});

test("a repair's mark is the line that begins at its place, however the answer came in chunks", () => {
  const lines = ["data:{}\n", "\n", ": ping\n", "\n", "data: {}\n", "\n"];
  const text = lines.join("");
  const repair = (at: number): { id: string; sentence: string; at: number } => ({ id: "r", sentence: "s", at });
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(text.length), { maxLength: 6 }), (cuts) => {
      const edges = [0, ...cuts.toSorted((a, b) => a - b), text.length];
      const chunks = edges.slice(1).map((end, at) => ({ ms: at, text: text.slice(edges[at], end) }));
      const marks = repairMarks({ chunks }, [repair(9), repair(0), repair(9), repair(text.length)]);
      expect(marks.map(({ start }) => start)).toEqual([0, 9, expect.any(Number)]);
      for (const { start, end } of marks) expect("data:{}\n: ping\n").toContain(text.slice(start, end).trim());
    }),
  );
});

test("places behind what was left out are where they were", () => {
  const chunks = ["data: a\n\n", "data:b\n\n"].map((text, ms) => ({ ms, text }));
  const tape = { chunks, left_out: { after: 1, chunks: 3, characters: 100 } };
  const [mark, ...others] = repairMarks(tape, [
    { id: "r", sentence: "gone", at: 50 },
    { id: "r", sentence: "here", at: 109 },
  ]);
  expect(others).toEqual([]);
  expect(mark).toMatchObject({ start: 109, end: 115, title: "here" });
});
