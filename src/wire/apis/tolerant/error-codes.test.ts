import { describe, expect, test } from "vitest";
import type { GenerationEvent, GenerationFailure } from "../../core/events.ts";
import { chatReader } from "../chat/read.ts";
import { responsesErrorFormat } from "../responses/errors.ts";
import { anthropicFormat } from "../messages/port.ts";
import { openaiErrorFormat } from "../api-error-format.ts";
import { lean } from "../profile.ts";
import { ResponseReader } from "../responses/read.ts";
import type { EventReader } from "../source-port.ts";
import { waitInMessage } from "./error-codes.ts";
import { readFailure } from "./read-failure.ts";

const failureOf = (events: readonly GenerationEvent[]): GenerationFailure | undefined => {
  const last = events.at(-1);
  return last?.type === "end" && "failure" in last.end ? last.end.failure : undefined;
};
const newCallId = (): string => "call";
const streamed = (reader: EventReader, value: unknown): GenerationFailure | undefined =>
  failureOf([...reader.push(`data: ${JSON.stringify(value)}\n\n`), ...reader.end()]);

/**
 * Errors without a type became 502, which clients repeat: the failed responses of OpenAI have a code only, and our tests of errors had
 * been made of HTTP answers, which have a status.
 */
describe("the status follows the code", () => {
  test.each<[string, number, string, number]>([
    ["rate_limit_exceeded", 429, "rate_limit_error", 429],
    ["insufficient_quota", 429, "rate_limit_error", 429],
    ["invalid_prompt", 400, "invalid_request_error", 400],
    ["image_too_small", 400, "invalid_request_error", 400],
    ["bio_policy", 400, "invalid_request_error", 400],
    ["server_is_overloaded", 503, "overloaded_error", 529],
    ["slow_down", 503, "overloaded_error", 529],
    ["vector_store_timeout", 504, "timeout_error", 504],
    ["model_not_found", 404, "not_found_error", 404],
    ["invalid_api_key", 401, "authentication_error", 401],
    ["context_length_exceeded", 400, "invalid_request_error", 400],
    // A code that nobody knows says nothing.
    ["server_error", 502, "api_error", 500],
    ["something_else", 502, "api_error", 500],
  ])("%s", (code, status, type, anthropicStatus) => {
    const error = { code, message: "It failed." };
    const response = { id: "resp_1", object: "response", status: "failed", model: "m", output: [], error };
    const failures = [
      streamed(new ResponseReader({ newCallId }), { type: "response.failed", sequence_number: 0, response }),
      streamed(new ResponseReader({ newCallId }), { type: "error", sequence_number: 0, ...error, param: null }),
      failureOf(new ResponseReader({ newCallId }).readBody(response)),
      streamed(chatReader({ newCallId }), { error }),
      failureOf(chatReader({ newCallId }).readBody({ error })),
    ];
    for (const failure of failures) {
      expect(failure).toMatchObject({ status, code });
      if (!failure) continue;
      for (const format of [openaiErrorFormat, responsesErrorFormat]) {
        const own = format.writeFailure(failure, lean, "req_1");
        expect(own.status).toBe(format === responsesErrorFormat && code === "context_length_exceeded" ? 400 : status);
        expect(JSON.parse(own.body)).toMatchObject({ error: { code } });
      }
      const { status: sent, body } = anthropicFormat.writeFailure(failure, lean, "req_1");
      expect([sent, (JSON.parse(body) as { error: { type: string } }).error.type]).toEqual([anthropicStatus, type]);
    }
  });

  test("the status of an HTTP answer counts, and the code is more specific than the type", () => {
    expect(readFailure({ error: { message: "m", code: "rate_limit_exceeded" } }, 500)?.status).toBe(500);
    const error = { message: "m", type: "invalid_request_error", code: "model_not_found" };
    expect(readFailure({ error })?.status).toBe(404);
  });

  test("clients are told not to repeat what fails until somebody pays", () => {
    const header = (code: string): unknown => readFailure({ error: { code, message: "m" } })?.headers;
    expect(header("insufficient_quota")).toEqual({ "x-should-retry": "false" });
    expect(header("credit_balance_exhausted")).toEqual({ "x-should-retry": "false" });
    expect(header("rate_limit_exceeded")).toBeUndefined();
    const typed = { type: "insufficient_quota", code: "credit_balance_exhausted", message: "m" };
    expect(readFailure({ error: typed }, 429)?.headers).toEqual({ "x-should-retry": "false" });
  });
});

describe("the wait that a rate limit names", () => {
  test.each<[string, number | undefined]>([
    ["Slow down: try again in 7s.", 7],
    ["Rate limit reached for gpt-5.5. Please try again in 20ms. Visit …", 0.02],
    ["Please try again in 6m12.5s.", 372.5],
    ["Please try again in 1h2m3s.", 3723],
    ["Please try again in 6m0s.", 360],
    ["Please retry after 10 seconds.", 10],
    ["Please try again in 2m.", 120],
    ["Please try again in a moment.", undefined],
    ["Please try again in 0s.", undefined],
    ["", undefined],
  ])("%s", (message, seconds) => {
    expect(waitInMessage(message)).toBe(seconds);
  });

  test("is the client's, if no header says so", () => {
    const error = { code: "rate_limit_exceeded", message: "Slow down: try again in 7s." };
    expect(readFailure({ error })).toMatchObject({ status: 429, retryAfterSeconds: 7 });
    expect(readFailure({ error: { message: "try again in 7s" } }, 400)).not.toHaveProperty("retryAfterSeconds");
  });
});
