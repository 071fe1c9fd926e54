import { expect, test } from "vitest";
import { judgedResult } from "./judged.ts";
import { probes } from "./probes.ts";

// An invalid request without any answer was counted by answer/status, which is about valid requests.
test.each([
  ["text", ["answer/status"]],
  ["wrong/json", ["wrong/status"]],
  ["wrong/n-zero/stream", ["wrong/status"]],
  ["unknown-member", []],
])("no answer to %s: %j", (id, rules) => {
  const probe = probes.find((one) => one.id === id);
  if (!probe) throw new Error(`There is no probe ${id}.`);
  const failure = "no answer within 10 s";
  const { findings, shown } = judgedResult({ probe, exchange: undefined, failure, milliseconds: 10_000 }, undefined);
  expect(findings).toEqual(rules.map((rule) => ({ rule, start: 0, end: 0, found: failure })));
  expect(shown).toEqual(rules);
});
