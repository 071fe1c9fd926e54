import { describe, expect, test } from "vitest";
import { readFailure } from "./read-failure.ts";

describe("lengths", () => {
  test("OpenRouter's error has the words of the server behind it", () => {
    const raw = JSON.stringify({ error: { message: "prompt is too long: 203052 tokens > 200000 maximum" } });
    const metadata = { raw, provider_name: "Anthropic" };
    expect(readFailure({ error: { message: "Provider returned error", code: 400, metadata } }, 400)).toMatchObject({
      kind: "context-overflow",
      message: "prompt is too long: 203052 tokens > 200000 maximum",
      tokens: { asked: 203_052, most: 200_000 },
    });
    const words = { raw: "upstream is busy", provider_name: "X" };
    expect(readFailure({ error: { message: "Provider returned error", metadata: words } }, 502)?.message).toBe(
      "upstream is busy",
    );
  });

  test("Xiaomi's limit stands in `param` (AQBot-Desktop/AQBot#93)", () => {
    const param =
      "max_tokens is too large: 1048576. This model supports at most 131072 completion tokens, whereas you provided 1048576.";
    const error = { message: "Param Incorrect", type: "upstream_error", param, code: "400" };
    expect(readFailure({ error }, 400)).toMatchObject({
      kind: "invalid-request",
      message: "Param Incorrect",
      answerLimit: { max: 131_072 },
    });
  });

  test("a status of the server's own fault becomes the client's", () => {
    const error = { message: "the request exceeds the available context size", code: 500, type: "server_error" };
    expect(readFailure({ error }, 500)).toMatchObject({
      kind: "context-overflow",
      status: 400,
      sourceType: "invalid_request_error",
      code: "context_length_exceeded",
    });
  });

  test("a rate limit on tokens is none", () => {
    const message = "Requests with max_tokens > 4096 must have stream=true";
    const failure = readFailure({ error: { message } }, 429);
    expect(failure).toMatchObject({ kind: "rate-limited", status: 429 });
    expect(failure).not.toHaveProperty("answerLimit");
  });
});
