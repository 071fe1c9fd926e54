import { describe, expect, test } from "vitest";
import { everyRule } from "../../src/check/rules/every-rule.ts";
import type { Exchange } from "../../src/check/rules/exchange.ts";
import { formOf } from "../../src/check/rules/form.ts";
import { judge } from "../../src/check/rules/judge.ts";
import type { ProfileName } from "../../src/check/rules/profile/profile-rule.ts";
import { legalBody } from "./legal/body.ts";
import { legalOllama } from "./legal/ollama.ts";
import { legalResponseBody, legalResponseSocket, legalResponseStream } from "./legal/responses.ts";
import { type Legal, legalStream } from "./legal/stream.ts";
import { runIllegal, runLegal } from "./mutation-run.ts";
import { illegalChanges, legalChanges } from "./mutations/every-mutation.ts";

// What our own reader and writer make is legal in both profiles: no rule finds anything in it, not even a note.
describe.each<[string, (seed: number) => Legal]>([
  ["streams", legalStream],
  ["bodies", legalBody],
  ["streams of responses", legalResponseStream],
  ["whole responses", legalResponseBody],
  ["responses by WebSocket", legalResponseSocket],
])("2,000 %s of our own writer", { timeout: 240_000 }, (_, legal) => {
  test("have no finding, whichever profile is demanded: none, or their own", () => {
    const found: string[] = [];
    for (let seed = 0; seed < 2000; seed++) {
      const { exchange, profile } = legal(seed);
      for (const demanded of [undefined, profile.name]) {
        for (const finding of judge(exchange, demanded).findings)
          found.push(`seed ${seed}, ${demanded}: ${finding.rule}: ${finding.found}`);
      }
    }
    expect(found).toEqual([]);
  });

  test("are not of the other profile", () => {
    for (let seed = 0; seed < 2000; seed++) {
      const { exchange, profile } = legal(seed);
      expect(rulesBroken(exchange, profile.name === "lean" ? "exact" : "lean")).not.toEqual([]);
    }
  });
});

test("2,000 exchanges of our own writer of Ollama's API have no finding", () => {
  const found: string[] = [];
  for (let seed = 0; seed < 2000; seed++)
    for (const { rule, found: what } of judge(legalOllama(seed).exchange).findings)
      found.push(`seed ${seed}: ${rule}: ${what}`);
  expect(found).toEqual([]);
});

test(
  "the form of a stream of our own writer is its profile, with and without obfuscation",
  { timeout: 240_000 },
  () => {
    for (let seed = 0; seed < 1000; seed++) {
      const { exchange, profile } = legalStream(seed);
      if (exchange.endpoint === "chat")
        expect(formOf(exchange), `seed ${seed}`).toBe(profile.name === "lean" ? "lean" : "exact");
    }
  },
);

function rulesBroken(exchange: Exchange, demanded: ProfileName): string[] {
  return judge(exchange, demanded).findings.map(({ rule }) => rule);
}

test.each(illegalChanges)("$rule notices $name", (change) => {
  for (let seed = 0; seed < 3000; seed++) {
    const findings = change.make(seed);
    if (findings === undefined) continue;
    expect(findings.map((finding) => finding.rule)).toContain(change.rule);
    return;
  }
  expect.unreachable("nothing that this change fits");
});

test.each(legalChanges)("nobody minds $name", (change) => {
  for (let seed = 0; seed < 3000; seed++) {
    const findings = change.make(seed);
    if (findings === undefined) continue;
    expect(findings).toEqual([]);
    return;
  }
  expect.unreachable("nothing that this change fits");
});

test("every rule has a change that it notices, and every change a rule", () => {
  const covered = new Set(illegalChanges.map(({ rule }) => rule));
  const rules = everyRule.map(({ id }) => id);
  expect(rules.filter((id) => !covered.has(id))).toEqual([]);
  expect([...covered].filter((id) => !rules.includes(id))).toEqual([]);
});

test(
  "of 2,000 random illegal changes at least 99 % are reported (npm run mutate makes 10,000)",
  { timeout: 240_000 },
  () => {
    const scores = [...runIllegal(2000, 1).values()];
    const made = scores.reduce((sum, score) => sum + score.made, 0);
    const reported = scores.reduce((sum, score) => sum + score.reported, 0);
    expect(made).toBe(2000);
    expect(reported / made).toBeGreaterThanOrEqual(0.99);
  },
);

test("2,000 random legal changes lead to no finding", { timeout: 240_000 }, () => {
  expect(runLegal(2000, 2)).toEqual([]);
});
