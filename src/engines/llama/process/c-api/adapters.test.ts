import fc from "fast-check";
import { expect, test } from "vitest";
import { requestedScales, AdapterRotation } from "./adapters.ts";

test("a request without adapters has the model's own scales; one that names some has only those", () => {
  expect(requestedScales(undefined, [1, 0.5])).toBe("1,0.5");
  expect(requestedScales([{ id: 1, scale: 2 }], [1, 0.5])).toBe("0,2");
  expect(requestedScales([], [1, 0.5])).toBe("0,0");
  expect(requestedScales(undefined, [])).toBe("");
});

test("an adapter that the model does not have is refused by name", () => {
  expect(() => requestedScales([{ id: 2, scale: 1 }], [1, 0.5])).toThrow("'lora[0].id': the model has 2 adapters");
});

test("for every mixture: only slots with the same adapters are decoded together, and none is skipped twice", () => {
  const mixtures = fc.array(fc.array(fc.constantFrom("1", "0", "0.5"), { minLength: 1, maxLength: 6 }), {
    minLength: 4,
  });
  fc.assert(
    fc.property(mixtures, ([all = []]) => {
      const turns = new AdapterRotation();
      const kinds = new Set(all);
      const had = new Set<string>();
      for (let turn = 0; turn < kinds.size; turn++) {
        const together = turns.next(all, (one) => one);
        expect(new Set(together).size).toBe(1);
        expect(together.length).toBe(all.filter((one) => one === together[0]).length);
        had.add(together[0] ?? "");
      }
      expect(had).toEqual(kinds);
    }),
  );
});
