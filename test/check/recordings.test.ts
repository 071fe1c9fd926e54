import { expect, test } from "vitest";
import { formOf } from "../../src/judge/check/rules/form.ts";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { everyRule } from "../../src/judge/check/rules/every-rule.ts";
import { exchangeOfRecording, hasRecordings, readRecordings } from "../support/recordings.ts";

// Real OpenAI traffic is legal by definition: a rule that objects to it is wrong, or the recording is.
const present = hasRecordings("to judge");

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
  "0xPlaygrounds_rig__openai-adversarial-out-of-order-results-chat__1": {
    "body/created": "the recorder set the time to 0",
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
  const severities = new Map(everyRule.map((rule) => [rule.id, rule.severity]));
  const found: string[] = [];
  const all = readRecordings(file);
  for (const recording of all) {
    for (const finding of judge(exchangeOfRecording(recording, endpoint)).findings) {
      if (severities.get(finding.rule) === "note" || exceptions[recording.name]?.[finding.rule] !== undefined) continue;
      found.push(`${recording.name}: ${finding.rule}: ${finding.found}`);
    }
  }
  expect(found).toEqual([]);
  expect(all.length).toBeGreaterThan(0);
});

// Not even a note: the rule about obfuscation is what the recordings show.
test.skipIf(!present)("the obfuscation of every recorded stream is right", () => {
  const judged = readRecordings("chat-stream").map((recording) => judge(exchangeOfRecording(recording, "chat")));
  const ofRule = judged.flatMap(({ findings }) => findings.filter(({ rule }) => rule === "stream/obfuscation"));
  expect(ofRule).toEqual([]);
  expect(judged.filter(({ shown }) => shown.includes("stream/obfuscation")).length).toBeGreaterThan(100);
});

// The form of each is one of OpenAI's, by its date.
test.skipIf(!present)("every recorded chat stream is of a form that OpenAI had", () => {
  const forms = readRecordings("chat-stream").map((recording) => formOf(exchangeOfRecording(recording, "chat")));
  expect(forms.filter((form) => form !== undefined && form !== "exact" && !form.startsWith("OpenAI's"))).toEqual([]);
});
