import { expect, test } from "vitest";
import { judge } from "../../src/judge/check/rules/judge.ts";
import { ruleNamed } from "../../src/judge/check/rules/every-rule.ts";
import { exchangeOfRecording, hasRecordings, readRecordings, type Recording } from "../support/recordings.ts";

// Real traffic of the Responses API is legal by definition: a rule that objects to it is wrong, or the recording is.
const present = hasRecordings("of the Responses API to judge");

/** What is wrong with a recording, and so no fault of the rule that finds it. */
const exceptions: readonly (readonly [name: RegExp, rule: RegExp, why: string])[] = [
  [/coder_aibridge.*injected-tool/, /no-tools|known-tool/, "a proxy gave the model further tools than the request has"],
  [/coder_aibridge.*codex-example/, /echo$/, "the recorder replaced parts of the request"],
  [
    /coder_aibridge.*commentary-builtin-tool/,
    /^spec\//,
    "written by hand: no other recording of its time lacks logprobs",
  ],
  [/prompt-caching-5-6|shared-key/, /echo$/, "the collector cut the long instructions of the request"],
  [/carries-identity/, /^headers\/json$/, "the recorder wrote text/plain"],
];

function isExcused({ name }: Recording, found: string): boolean {
  return exceptions.some(([of, rule]) => of.test(name) && rule.test(found));
}

/** Bytes of 2026 that somebody kept as they were; errors, of which there are few, also from those who kept their values. */
function readRaw(file: string, since: string): Recording[] {
  const isRaw = ({ fidelity }: Recording): boolean => fidelity.startsWith("raw") || file === "responses-errors";
  return readRecordings(file).filter((recording) => (recording.date ?? "") >= since && isRaw(recording));
}

test.skipIf(!present).each([
  ["responses-stream", 220],
  ["responses", 400],
  ["responses-errors", 3],
])("no error and no warning on the recordings of 2026 in %s.jsonl", (file, atLeast) => {
  const all = readRaw(file, "2026");
  const found = all.flatMap((recording) =>
    judge(exchangeOfRecording(recording, "responses"))
      .findings.filter(({ rule }) => ruleNamed(rule).severity !== "note" && !isExcused(recording, rule))
      .map(({ rule, found: what }) => `${recording.name}: ${rule}: ${what}`),
  );
  expect(found).toEqual([]);
  expect(all.length).toBeGreaterThan(atLeast);
});

test.skipIf(!present)("recorded counts of tokens are right, and profile exact", () => {
  const counts = readRecordings("responses-other").filter(({ endpoint }) => endpoint.endsWith("/input_tokens"));
  const found = counts.flatMap(
    (recording) => judge(exchangeOfRecording(recording, "response-tokens"), "exact").findings,
  );
  const wrong = found.filter(({ rule }) => ruleNamed(rule).severity !== "note");
  expect(wrong).toEqual([]);
  expect(counts.length).toBeGreaterThan(3);
});

// What OpenAI sends today is profile exact.
test.skipIf(!present).each([
  ["responses-stream", 60],
  ["responses", 150],
])("%s.jsonl since 2026-07-10 is profile exact", (file, atLeast) => {
  const all = readRaw(file, "2026-07-10");
  const found = all.flatMap((recording) =>
    judge(exchangeOfRecording(recording, "responses"), "exact")
      .findings.filter(({ rule }) => rule.startsWith("profile/"))
      .map(({ rule, found: what }) => `${recording.name}: ${rule}: ${what}`),
  );
  expect(found).toEqual([]);
  expect(all.length).toBeGreaterThan(atLeast);
});

// access_programs, and the order of ChatGPT's usage.attribution, were accused.
test.skipIf(!present)("no answer of OpenAI's servers since 2026-08 is accused of not being profile exact", () => {
  const files = ["responses-stream", "responses", "responses-other", "responses-foreign"];
  const all = files
    .flatMap((file) => readRaw(file, "2026-08"))
    .filter(({ endpoint, status }) => endpoint === "/v1/responses" && status === 200);
  const found = all.flatMap((recording) =>
    judge(exchangeOfRecording(recording, "responses"), "exact")
      .findings.filter(({ rule }) => ruleNamed(rule).severity !== "note" && !isExcused(recording, rule))
      .map(({ rule, found: what }) => `${recording.name}: ${rule}: ${what}`),
  );
  expect(found).toEqual([]);
  expect(all.length).toBeGreaterThan(130);
  expect(all.some(({ body }) => JSON.stringify(body).includes("access_programs"))).toBe(true);
});

// Other servers, as their own users recorded them: accused where they are wrong, and nowhere else.
test.skipIf(!present)("other servers are accused where they are wrong", () => {
  const all = readRecordings("responses-foreign");
  const broken = all.map((recording) => {
    const { findings } = judge(exchangeOfRecording(recording, "responses"));
    const rules = findings.map(({ rule }) => rule).filter((rule) => ruleNamed(rule).severity !== "note");
    return [recording.name.split("__")[1]?.slice(0, 30), [...new Set(rules)].toSorted()];
  });
  expect(broken).toEqual([
    // LM Studio sends the arguments of a call whole.
    ["packages-open-responses-src-re", ["responses/part-whole"]],
    ["packages-open-responses-src-re", ["responses/part-whole"]],
    // llama.cpp's whole response: the time is 0, half of the members are missing, and usage has no details.
    ["tests-cassettes-openai-openai-", ["responses/created", "responses/usage-type", "spec/response"]],
    ["tests-cassettes-openai-openai-", ["responses/created", "responses/usage-type", "spec/response"]],
    // The backend of ChatGPT ends every response with an empty output, which is right there.
    ["llmprovider-testdata-chatgpt-r", []],
  ]);
});
