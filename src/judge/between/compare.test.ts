import { expect, test } from "vitest";
import { growthOf } from "../../../test/support/growth.ts";
import { differences } from "./compare.ts";

function found(clientSide: unknown, vendorSide: unknown): string[] {
  return differences(clientSide, vendorSide).map(
    ({ kind, path, to }) => `${kind} ${path}${to === undefined ? "" : ` → ${to}`}`,
  );
}

test("equal values have no differences", () => {
  expect(found({ a: [1, { b: "ü" }] }, { a: [1, { b: "ü" }] })).toEqual([]);
  expect(found({ a: undefined }, {})).toEqual([]);
});

test("members are lost, invented and changed, at their paths", () => {
  expect(found({ a: 1, b: { "x y": 2 } }, { a: 2, c: 3, b: {} })).toEqual(
    ["changed a", 'lost b["x y"]', "invented c", "reordered "].slice(0, 3),
  );
});

test("a text that is at another path was moved", () => {
  expect(found({ system: "A rule of the house." }, { messages: [{ text: "A rule of the house." }] })).toEqual([
    "lost system",
    "invented messages",
  ]);
  expect(found({ system: "A rule of the house." }, { instructions: "A rule of the house." })).toEqual([
    "moved system → instructions",
  ]);
});

test("the order of items and of members is a difference of its own", () => {
  expect(found([1, 2, 3], [3, 2, 1])).toEqual(["reordered "]);
  expect(found({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual(["reordered "]);
});

test("an item that is missing at the beginning does not make all others differ", () => {
  const items = Array.from({ length: 50 }, (_, at) => `item ${at}`);
  expect(found(items, items.slice(1))).toEqual(["lost [0]"]);
});

test("comparing takes time in proportion to the values", () => {
  const work = (size: number): (() => void) => {
    const list = Array.from({ length: size }, (_, at) => ({ id: `id ${at}`, text: "text" }));
    const other = list.map((item, at) => (at % 2 === 0 ? { ...item, id: `other ${at}` } : item));
    return () => void differences({ list, more: list }, { more: other, list: other });
  };
  expect(growthOf(work)).toBeLessThan(8);
});

test("an item that is added before others does not make them differ", () => {
  expect(
    differences(
      { parts: [{ image: "a" }, { text: "b" }] },
      { parts: [{ text: "new" }, { image: "a" }, { text: "b" }] },
    ),
  ).toEqual([{ kind: "invented", path: "parts[0]", vendorSide: { text: "new" } }]);
});

test("a message that is added, and the next one with another member, do not make each other differ", () => {
  // An image of a result follows in a message of its own, and the question after it has lost the detail of an image.
  const question = (image: object): object => ({ role: "user", content: [image, { text: "And here?" }] });
  const added = { role: "user", content: [{ text: "Image of the result:" }, { image: "a" }] };
  expect(found([question({ image: "a", detail: "low" })], [added, question({ image: "a" })])).toEqual([
    "invented [0]",
    "lost [0].content[0].detail",
  ]);
});
