import { expect, test } from "vitest";
import { everyRule } from "../../src/judge/check/rules/every-rule.ts";
import { formOf } from "../../src/judge/check/rules/form.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { legalBody } from "./legal/body.ts";
import { legalGemini } from "./legal/gemini.ts";
import { legalOllama } from "./legal/ollama.ts";
import { legalResponseBody, legalResponseSocket, legalResponseStream } from "./legal/responses.ts";
import { type Legal, legalStream } from "./legal/stream.ts";
import { runIllegal, runLegal } from "./mutation-run.ts";
import { illegalChanges, legalChanges } from "./mutations/every-mutation.ts";
import { times } from "../support/runs.ts";

/** How many exchanges of each kind, and random changes. Seeds are the same in each run. */
const count = times(80);

// What our own reader and writer make is legal in both profiles: no rule finds anything in it, not even a note.
test.each<[string, (seed: number) => Legal]>([
  ["streams", legalStream],
  ["bodies", legalBody],
  ["streams of responses", legalResponseStream],
  ["whole responses", legalResponseBody],
  ["responses by WebSocket", legalResponseSocket],
])(
  "%s of our own writer have no finding, whichever profile is demanded, none or their own; and are not of the other one",
  (_, legal) => {
    const found: string[] = [];
    for (let seed = 0; seed < count; seed++) {
      const { exchange, profile } = legal(seed);
      for (const demanded of [undefined, profile.name]) {
        for (const finding of judge(exchange, demanded).findings)
          found.push(`seed ${seed}, ${demanded}: ${finding.rule}: ${finding.found}`);
      }
      const other = profile.name === "lean" ? "exact" : "lean";
      expect(judge(exchange, other).findings, `seed ${seed}`).not.toEqual([]);
    }
    expect(found).toEqual([]);
  },
);

test.each([
  ["Ollama", legalOllama],
  ["Gemini", legalGemini],
])("exchanges of our own writer of %s's API have no finding", (_, legal) => {
  const found: string[] = [];
  for (let seed = 0; seed < count; seed++)
    for (const { rule, found: what } of judge(legal(seed).exchange).findings)
      found.push(`seed ${seed}: ${rule}: ${what}`);
  expect(found).toEqual([]);
});

test("the form of a stream of our own writer is its profile, with and without obfuscation", () => {
  for (let seed = 0; seed < count; seed++) {
    const { exchange, profile } = legalStream(seed);
    if (exchange.endpoint === "chat")
      expect(formOf(exchange), `seed ${seed}`).toBe(profile.name === "lean" ? "lean" : "exact");
  }
});

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

test("of random illegal changes at least 99 % are reported (npm run mutate makes 10,000)", () => {
  const scores = [...runIllegal(2 * count, 1).values()];
  const made = scores.reduce((sum, score) => sum + score.made, 0);
  const reported = scores.reduce((sum, score) => sum + score.reported, 0);
  expect(made).toBe(2 * count);
  expect(reported / made).toBeGreaterThanOrEqual(0.99);
});

test("random legal changes lead to no finding", () => {
  expect(runLegal(2 * count, 2)).toEqual([]);
});
