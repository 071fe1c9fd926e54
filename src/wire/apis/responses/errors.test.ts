import { expect, test } from "vitest";
import { invalidImage } from "../../core/failure.ts";
import { incorrectApiKey, modelNotFound } from "../failures.ts";
import { exact, lean } from "../profile.ts";
import { numberBelow } from "../request/refusals.ts";
import { responsesErrorFormat } from "./errors.ts";

const pretty = (message: string, param: string | null, code: string | null): string =>
  JSON.stringify({ error: { message, type: "invalid_request_error", param, code } }, null, 2);

// Recordings of 2025-12 and 2026: chat says 404, and its gateway indents with four spaces.
test("an unknown model is a 400 that names the parameter", () => {
  const answer = responsesErrorFormat.writeFailure(modelNotFound("x", []).failure, exact, "req_1");
  expect(answer).toEqual({
    status: 400,
    contentType: "application/json",
    body: pretty("The requested model 'x' does not exist.", "model", "model_not_found"),
  });
  const { status, body } = responsesErrorFormat.writeFailure(modelNotFound("x", ["y"]).failure, lean, "req_1");
  expect(status).toBe(400);
  expect(body).toContain("Available models: `y`.");
});

test("the error of a wrong key is indented by two spaces, and says how to send a key", () => {
  const answer = responsesErrorFormat.writeFailure(incorrectApiKey("test").failure, exact, "req_1");
  const message =
    "Incorrect API key provided: test. You can find your API key at https://platform.openai.com/account/api-keys.";
  expect(answer).toEqual({
    status: 401,
    contentType: "application/json",
    body: pretty(message, null, "invalid_api_key"),
    headers: { "www-authenticate": 'Bearer realm="OpenAI API"' },
  });
});

test("a prompt that is too long is an error of the input", () => {
  const failure = { kind: "context-overflow", message: "9 tokens of 8.", status: 400, param: "messages" } as const;
  expect(JSON.parse(responsesErrorFormat.writeFailure(failure, exact, "req_1").body)).toMatchObject({
    error: {
      param: "input",
      code: "context_length_exceeded",
      message: expect.stringMatching(/^Your input exceeds the context window/),
    },
  });
  expect(responsesErrorFormat.writeFailure(failure, lean, "req_1").body).toContain("9 tokens of 8.");
});

test("any other failure keeps its words", () => {
  const { body } = responsesErrorFormat.writeFailure(
    numberBelow("temperature", "decimal", 0, -1).failure,
    exact,
    "req_1",
  );
  expect(body).toBe(
    pretty(
      "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
      "temperature",
      "decimal_below_min_value",
    ),
  );
});

test("an image of an unknown type is an error of the input", () => {
  const { failure } = invalidImage({ why: "format" }, "Ours.", "input[0].content[1]");
  expect(JSON.parse(responsesErrorFormat.writeFailure(failure, exact, "req_1").body)).toEqual({
    error: {
      message:
        "The image data you provided does not represent a valid image. Please check your input and try again with one of the supported image formats: ['image/jpeg', 'image/png', 'image/gif', 'image/webp'].",
      type: "invalid_request_error",
      param: "input",
      code: "invalid_value",
    },
  });
  expect(JSON.parse(responsesErrorFormat.writeFailure(failure, lean, "req_1").body)).toMatchObject({
    error: { message: "Ours.", param: "input[0].content[1]", code: "invalid_image_format" },
  });
});
