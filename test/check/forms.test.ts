import { expect, test } from "vitest";
import { capturedAnswers, judgeCapture } from "../../src/judge/check/check-capture.ts";
import { reportOf } from "../../src/judge/check/report/report-of.ts";
import { reportSummary } from "../../src/judge/check/report/report.ts";

const usage = {
  input_tokens: 10,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
  output_tokens: 4,
  service_tier: "standard",
  inference_geo: "global",
};
const head = { id: "msg_011CeCHfDwjZ4FNno3HRAaz6", type: "message", role: "assistant" };
const model = "claude-haiku-4-5-20251001";
const content = [{ type: "text", text: "Hello!" }];
const stop = { stop_reason: "end_turn", stop_sequence: null };

const { inference_geo: _, ...usageOf2025 } = usage;
/** Messages as Anthropic sent them in these months. */
const months = {
  "2025-08": { ...head, model, content, ...stop, usage: usageOf2025 },
  "2026-02": { model, ...head, content, ...stop, usage },
  "2026-04": { model, ...head, content, ...stop, stop_details: null, usage },
  "2026-09": { model, ...head, content, container: null, ...stop, stop_details: null, usage, diagnostics: null },
} as const;

const report = (body: string) =>
  reportOf("answer", [judgeCapture("answer", body, undefined, "exact")], { profile: "exact" });
const found = (body: string) =>
  report(body).rules.flatMap(({ id, severity, evidence }) =>
    severity === "note" ? [] : evidence.map(({ found }) => `${id}: ${found}`),
  );

// Every message of before September 2026 was accused of lacking its new members, and those of September of having them.
test.each(Object.entries(months))("a message of %s is one, and is not accused of it", (month, message) => {
  const body = JSON.stringify(message);
  expect(found(body)).toEqual([]);
  expect(reportSummary(report(body))).toContain(`answers in the form "Anthropic's of ${month}"`);
});

test("a member of the month, or of an earlier one, that is missing is an error", () => {
  const { stop_details: _, ...without } = months["2026-09"];
  expect(found(JSON.stringify(without))).toEqual(["profile/messages-members: no stop_details"]);
});

test("the model has been the first member since October 2025", () => {
  const late = { ...head, model, content, ...stop, stop_details: null, usage };
  expect(found(JSON.stringify(late))).toEqual([
    expect.stringContaining("profile/messages-members: the order id, type"),
  ]);
});

// A line of a batch's results was judged as a chat answer, with six errors.
test("of the results of a batch, the messages and errors are judged", () => {
  const error = { type: "error", error: { type: "api_error", message: "Failed." }, request_id: null };
  const results = [
    { type: "succeeded", message: months["2026-09"] },
    { type: "errored", error },
    { type: "canceled" },
  ].map((result, at) => JSON.stringify({ custom_id: `${at}`, result }));
  const answers = capturedAnswers(`${results.join("\n")}\n`);
  expect(answers).toEqual([JSON.stringify(months["2026-09"]), JSON.stringify(error)]);
  expect(answers.flatMap(found)).toEqual([]);
  // A file whose first request was canceled was judged as one body that is not JSON.
  expect(capturedAnswers(results.toReversed().join("\n"))).toEqual(answers.toReversed());
  expect(capturedAnswers("data: {}\n\n")).toEqual(["data: {}\n\n"]);
});
