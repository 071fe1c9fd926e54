import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { judgeCapture } from "../../src/judge/check/check-capture.ts";
import { everyRule, isOfProfile } from "../../src/judge/check/rules/every-rule.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { logprobExchange } from "./legal/logprobs.ts";
import { exchangeOfRecording, hasRecordings, readRecordings } from "../support/recordings.ts";
import { runTruewire } from "../support/serve.ts";

const present = hasRecordings("to demand profile exact of");

/** What is wrong with a recording, and so no fault of the rule that finds it. */
const exceptions: Record<string, string> = {
  "activeagents_activeagent___cassettes-integration-open_ai-chat-native_format_test-test_agent_functions_with_streaming__1":
    "another request was recorded with this answer",
  "newrelic_newrelic-python-agent__tests-mlmodel_openai-cassette__29": "the recorder laid the JSON out anew",
  "newrelic_newrelic-python-agent__tests-mlmodel_langchain-cassette__1": "the recorder laid the JSON out anew",
  "newrelic_newrelic-python-agent__tests-mlmodel_langchain-cassette__18": "the recorder laid the JSON out anew",
};

const files = [
  ["chat-stream", "chat", 150],
  ["completions-stream", "completions", 10],
  ["chat", "chat", 150],
  ["completions", "completions", 15],
  ["errors", "other", 5],
  ["embeddings", "embeddings", 3],
] as const;

// What OpenAI sends today is profile exact: were a rule to find anything, the rule would be wrong.
test.skipIf(!present).each(files)("%s.jsonl since 2025-08-05 is profile exact", (file, endpoint, atLeast) => {
  const found: string[] = [];
  let judged = 0;
  for (const recording of readRecordings(file)) {
    const { name, date, fidelity } = recording;
    // Other recorders keep a body's values, not its bytes.
    if ((date ?? "") < "2025-08-05" || (fidelity !== "raw" && !file.endsWith("stream"))) continue;
    judged++;
    for (const { rule, found: what } of judge(exchangeOfRecording(recording, endpoint), "exact").findings)
      if (rule.startsWith("profile/") && exceptions[name] === undefined) found.push(`${name}: ${rule}: ${what}`);
  }
  expect(found).toEqual([]);
  expect(judged).toBeGreaterThan(atLeast);
});

describe("without a demand", () => {
  test("no rule of a profile is applied", () => {
    const { shown } = judgeCapture("capture", "data: [DONE]\n\n");
    expect(shown.filter((id) => id.startsWith("profile/"))).toEqual([]);
  });
});

// Numbers that JSON and OpenAI print differently: zero, below 1e-5, below 1e-6.
describe.each(["lean", "exact"] as const)("log probabilities of profile %s", (profile) => {
  test.each([0, -1, -0.25, -1e-5, -9.9e-6, -1.5e-6, -1.2e-7, -9999])(
    "%d is printed as the profile has it",
    (logprob) => {
      for (const stream of [true, false]) {
        const exchange = logprobExchange(logprob, profile, stream);
        expect(judge(exchange, profile).findings).toEqual([]);
        expect(judge(exchange, profile).shown).toContain("profile/numbers");
      }
    },
  );
});

describe("truewire check --file … --profile", () => {
  const folder = mkdtempSync(join(tmpdir(), "truewire-profile-"));
  const capture = join(folder, "lean.sse");
  const error = join(folder, "error.json");
  beforeAll(() => {
    writeFileSync(capture, logprobExchange(-1, "lean", true).response.body);
    writeFileSync(error, '{"error":{"message":"x","type":"invalid_request_error","param":"n","code":null}}');
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const check = (file: string, ...flags: string[]): ReturnType<typeof runTruewire> =>
    runTruewire(["check", "--file", file, ...flags]);

  test.each(["pretty", "json", "junit", "markdown", "html"])(
    "a stream of the other form fails in %s",
    async (format) => {
      const demanded = await check(capture, "--profile", "exact", "--format", format);
      expect(demanded.code).toBe(1);
      expect(demanded.stdout).toContain("profile/first-delta");
      expect(demanded.stderr).toBe("");
      const right = await check(capture, "--profile", "lean", "--format", format);
      expect(right.code).toBe(0);
    },
  );

  test("its evidence is the place where the form is left", async () => {
    const { stdout } = await check(capture, "--profile", "exact", "--format", "json");
    const { rules, profile } = JSON.parse(stdout) as {
      profile: string;
      rules: { id: string; status: string; severity: string; evidence: { excerpt: { offending: string } }[] }[];
    };
    expect(profile).toBe("exact");
    const rule = rules.find(({ id }) => id === "profile/first-delta");
    expect(rule).toMatchObject({ status: "broken", severity: "error" });
    expect(rule?.evidence[0]?.excerpt.offending).toBe('"delta"');
  });

  test("bodies of errors, too", async () => {
    const demanded = await check(error, "--profile", "exact");
    expect(demanded.code).toBe(1);
    expect(demanded.stdout).toContain("profile/layout");
    expect((await check(error, "--profile", "lean")).code).toBe(0);
  });

  test("without the option, the report does not speak of profiles, and both forms pass", async () => {
    const free = await check(capture, "--format", "json");
    expect(free.code).toBe(0);
    const { rules } = JSON.parse(free.stdout) as { rules: { id: string }[] };
    expect(rules.filter(({ id }) => id.startsWith("profile/"))).toEqual([]);
    expect(rules.length).toBe(everyRule.filter((rule) => !isOfProfile(rule)).length);
  });

  test("a profile that does not exist cannot be demanded", async () => {
    expect(await check(capture, "--profile", "gold")).toMatchObject({ code: 2, stdout: "" });
  });
});
