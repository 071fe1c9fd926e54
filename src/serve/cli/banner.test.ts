import { expect, test } from "vitest";
import { noteOfNode } from "./banner.ts";

test("Node 20 gets one line on what Node 24 would give; newer ones get none", () => {
  expect(noteOfNode("20.19.0")).toEqual([expect.stringMatching(/^Node 20\.19\.0 has had no security fixes/)]);
  expect(noteOfNode("22.15.0")).toEqual([]);
  expect(noteOfNode("24.21.0")).toEqual([]);
});
