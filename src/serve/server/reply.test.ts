import { expect, test } from "vitest";
import { warningHeader } from "./reply.ts";

test("warnings are in one header, without characters that a header must not contain", () => {
  expect(warningHeader(["a: ä\nb", "c"])).toEqual({ "x-truewire-warning": "a: ?b; c" });
});

test("however many and however long they are, the header stays short", () => {
  const warnings = Array.from({ length: 5000 }, (_, at) => `messages.${at}: ${"x".repeat(5000)}`);
  expect(warningHeader(warnings)["x-truewire-warning"]).toHaveLength(1000);
});
