import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { rows } from "./fault.ts";

test("each row of docs/faults.md has a test that brings it about, and each of these tests has a row", () => {
  const sources = ["test/faults", "test/models", "test/http"].flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(folder, name), "utf8")),
  );
  const tested = sources.flatMap((source) =>
    [...source.matchAll(/\b(?:fault|expectRow|signalled)\(\s*"([^"]+)"/g)].map(([, name = ""]) => name),
  );
  const told = rows.map(({ fault }) => fault);
  expect(tested.toSorted()).toEqual(told.toSorted());
  expect(told.length).toBeGreaterThanOrEqual(20);
});
