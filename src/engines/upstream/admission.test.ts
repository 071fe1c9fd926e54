import fc from "fast-check";
import { expect, test } from "vitest";
import { Admission } from "./admission.ts";

test("no more than the limit are admitted, each is admitted once, and all are in the end", () => {
  const applicant = fc.record({
    owner: fc.constantFrom("ann", "bob"),
    tier: fc.constantFrom("priority" as const, "default" as const, "flex" as const),
  });
  const step = fc.oneof(fc.record({ enter: applicant }), fc.record({ leave: fc.nat(30) }));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), fc.integer({ min: 1, max: 5 }), (steps, limit) => {
      const admission = new Admission(limit, 1000);
      const open: { admitted: number; leave: () => void }[] = [];
      const check = (): void => {
        const admitted = open.filter((one) => one.admitted > 0);
        expect(admitted.length).toBe(Math.min(limit, open.length));
        expect(admitted.every((one) => one.admitted === 1)).toBe(true);
        expect(admission.queued).toBe(open.length - admitted.length);
      };
      for (const one of steps) {
        if ("enter" in one) {
          const entry = { admitted: 0, leave: (): void => {} };
          const leave = admission.enter(one.enter, () => entry.admitted++);
          if (typeof leave !== "function") throw new Error("refused");
          open.push(Object.assign(entry, { leave }));
        } else open.splice(one.leave, 1)[0]?.leave();
        check();
      }
      while (open.length > 0) {
        open.find(({ admitted }) => admitted > 0)?.leave();
        open.splice(
          open.findIndex(({ admitted }) => admitted > 0),
          1,
        );
        check();
      }
    }),
  );
});

test("the queue of one owner has a limit, and others may still wait", () => {
  const admission = new Admission(1, 2);
  const enter = (owner: string): unknown => admission.enter({ owner }, () => {});
  expect(enter("ann")).toBeTypeOf("function");
  expect(enter("ann")).toBeTypeOf("function");
  expect(enter("ann")).toBeTypeOf("function");
  expect(enter("ann")).toMatchObject({ status: 429, kind: "overloaded", retryAfterSeconds: 1 });
  expect(enter("bob")).toBeTypeOf("function");
});
