import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Exchange } from "../../src/check/rules/exchange.ts";
import { judge } from "../../src/check/rules/judge.ts";
import { allRules } from "../../src/check/rules/all-rules.ts";

// Real OpenAI traffic is legal by definition: a rule that objects to it is wrong, or the recording is.
const recordings = new URL("../../../shared/recordings/", import.meta.url);
const present = existsSync(recordings);
if (!present) console.log("skipped: no ../shared/recordings to judge");

interface Recording {
  readonly name: string;
  readonly endpoint: string;
  readonly status: number;
  readonly request: Record<string, unknown> | null;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** What is wrong with a recording, and so no fault of the rule that finds it. */
const exceptions: Record<string, Record<string, string>> = {
  "DataDog_dd-trace-py__tests-contrib-openai-cassettes-v1-chat_completion_streamed__0": {
    "headers/event-stream": "the recorder wrote application/json over every answer",
  },
  "DataDog_dd-trace-py__tests-contrib-openai-cassettes-v1-chat_completion_tool_call_streamed__0": {
    "headers/event-stream": "the recorder wrote application/json over every answer",
    "tool/known-name": "another request was recorded with this answer",
    "usage/uninvited": "another request was recorded with this answer",
    "request/no-tools": "another request was recorded with this answer",
  },
  "activeagents_activeagent___cassettes-integration-open_ai-chat-native_format_test-test_agent_functions_with_streaming__1":
    {
      "usage/missing": "another request was recorded with this answer",
    },
  "instructor-ai_instructor-rb__spec-vcr_cassettes-iterable_spec-valid_response__0": {
    "body/call-finish": "until mid-2024 a required call ended with stop, as a named one still does",
  },
};

const files = [
  ["chat-stream", "chat"],
  ["completions-stream", "completions"],
  ["chat", "chat"],
  ["completions", "completions"],
  ["errors", "other"],
  ["models", "models"],
] as const;

test.skipIf(!present).each(files)("no error and no warning on the recordings in %s.jsonl", (file, endpoint) => {
  const severities = new Map(allRules.map((rule) => [rule.id, rule.severity]));
  const found: string[] = [];
  const lines = readFileSync(new URL(`${file}.jsonl`, recordings), "utf8")
    .split("\n")
    .filter(Boolean);
  for (const line of lines) {
    const recording = JSON.parse(line) as Recording;
    for (const finding of judge(exchangeOf(recording, endpoint)).findings) {
      if (severities.get(finding.rule) === "note" || exceptions[recording.name]?.[finding.rule] !== undefined) continue;
      found.push(`${recording.name}: ${finding.rule}: ${finding.found}`);
    }
  }
  expect(found).toEqual([]);
  expect(lines.length).toBeGreaterThan(0);
});

function exchangeOf(recording: Recording, endpoint: Exchange["endpoint"]): Exchange {
  // Some recorders kept only a few headers; without Content-Type they tell nothing.
  const headers = recording.headers["content-type"] === undefined ? null : recording.headers;
  return {
    endpoint,
    request: { method: "POST", path: recording.endpoint, ...(recording.request && { body: recording.request }) },
    response: { status: recording.status, headers, body: recording.body, complete: true },
  };
}
