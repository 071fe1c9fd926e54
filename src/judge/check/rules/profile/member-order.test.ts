import { expect, test } from "vitest";
import { memberViolation } from "./member-order.ts";

const wanted = ["id", "object?", "choices"];

test.each<[object, boolean, string | undefined]>([
  [{ id: 1, object: 2, choices: 3 }, false, undefined],
  [{ id: 1, choices: 3 }, false, undefined],
  [{ choices: 3, id: 1 }, false, "the order choices, id"],
  [{ id: 1 }, false, "no choices"],
  [{ id: 1, x: 0, choices: 3 }, false, "the member x"],
  [{ id: 1, x: 0, choices: 3 }, true, undefined],
  [{ choices: 3, x: 0, id: 1 }, true, "the order choices, id"],
])("%j, further ones allowed: %j: %s", (object, further, found) => {
  expect(memberViolation(object as Record<string, unknown>, wanted, further)).toBe(found);
});
