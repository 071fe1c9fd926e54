import { expect, test } from "vitest";
import { judge } from "../../src/check/rules/judge.ts";
import { streamRules } from "../../src/check/rules/stream/stream-rules.ts";
import { illegalMutations } from "./illegal-mutations.ts";
import { legalExchange } from "./legal-exchange.ts";
import { illegal, runIllegal, runLegal } from "./mutation-run.ts";

// What our own reader and writer make is legal in both profiles: no rule finds anything in it, not even a note.
test("no finding in 2,000 streams of our own writer", () => {
  const found: string[] = [];
  for (let seed = 0; seed < 2000; seed++) {
    for (const finding of judge(legalExchange(seed)).findings)
      found.push(`seed ${seed}: ${finding.rule}: ${finding.found}`);
  }
  expect(found).toEqual([]);
});

test.each(illegalMutations)("$rule notices $name", (mutation) => {
  for (let seed = 0; seed < 3000; seed++) {
    const findings = illegal(mutation, seed);
    if (findings === undefined) continue;
    expect(findings.map((finding) => finding.rule)).toContain(mutation.rule);
    return;
  }
  expect.unreachable("no stream that this mutation fits");
});

test("every rule about streams has a mutation", () => {
  const covered = new Set(illegalMutations.map((mutation) => mutation.rule));
  expect(streamRules.map((rule) => rule.id).filter((id) => !covered.has(id))).toEqual([]);
});

test("of 2,000 random illegal changes at least 99 % are reported (npm run mutate makes 10,000)", () => {
  const scores = [...runIllegal(2000, 1).values()];
  const made = scores.reduce((sum, score) => sum + score.made, 0);
  const reported = scores.reduce((sum, score) => sum + score.reported, 0);
  expect(made).toBe(2000);
  expect(reported / made).toBeGreaterThanOrEqual(0.99);
});

test("2,000 random legal changes lead to no finding", () => {
  expect(runLegal(2000, 2)).toEqual([]);
});
