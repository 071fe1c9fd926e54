import { expect, test } from "vitest";
import { formatNamed } from "../../../formats/known.ts";
import { plainText } from "../../../formats/plain-text.ts";
import { sameFormat } from "./same-format.ts";

test("the same description is the same object, other descriptions are not, and few are kept", () => {
  const copy = () => structuredClone(formatNamed("hermes") ?? plainText);
  const first = sameFormat(copy());
  expect(sameFormat(copy())).toBe(first);
  expect(sameFormat({ ...copy(), id: "other" })).not.toBe(first);
  for (let i = 0; i < 8; i++) sameFormat({ ...copy(), id: `other ${i}` });
  expect(sameFormat(copy())).not.toBe(first);
});
