import { describe, expect, test } from "vitest";
import type { ImageProblem } from "../core/events.ts";
import { invalidImage } from "../core/failure.ts";
import { writeErrorBody } from "./error-body.ts";
import {
  incorrectApiKey,
  malformedJson,
  maskKey,
  methodNotAllowed,
  missingApiKey,
  modelDoesNotExist,
  modelNotFound,
  unknownUrl,
} from "./failures.ts";
import { exact, lean, type Profile } from "./profile.ts";

describe("profile exact has two serializers, as recorded in 2025 and 2026", () => {
  test("the gateway: four spaces, a final line feed, HTML-safe, with charset", () => {
    expect(writeErrorBody(incorrectApiKey("<key>&").failure, exact)).toEqual({
      status: 401,
      contentType: "application/json; charset=utf-8",
      body: String.raw`{
    "error": {
        "message": "Incorrect API key provided: \u003ckey\u003e\u0026. You can find your API key at https://platform.openai.com/account/api-keys.",
        "type": "invalid_request_error",
        "param": null,
        "code": "invalid_api_key"
    }
}
`,
    });
  });

  test("the application: two spaces, no line feed, no charset", () => {
    expect(writeErrorBody(modelDoesNotExist("<x>").failure, exact)).toEqual({
      status: 404,
      contentType: "application/json",
      body: `{
  "error": {
    "message": "The model '<x>' does not exist",
    "type": "invalid_request_error",
    "param": "model",
    "code": "model_not_found"
  }
}`,
    });
  });

  test.each([missingApiKey(), modelNotFound("x", []), unknownUrl("POST", "/v1/x")])(
    "of the gateway: %s",
    ({ failure }) => {
      expect(writeErrorBody(failure, exact).body).toMatch(/^\{\n {4}"error"/);
    },
  );
});

test("profile lean writes one line, members in the same order, nothing that is for the log", () => {
  const failure = { message: "m", status: 500, kind: "internal" as const, cause: new Error("secret") };
  expect(writeErrorBody(failure, lean)).toEqual({
    status: 500,
    contentType: "application/json",
    body: '{"error":{"message":"m","type":"server_error","param":null,"code":null}}',
  });
});

test.each([
  ["short", "short"],
  ["twelve-chars", "twelve-chars"],
  ["thirteen-char", "thirteen*char"],
  ["sk-0123456789abcdef", "sk-01234*******cdef"],
])("the key %s is shown as %s", (key, shown) => {
  expect(maskKey(key)).toBe(shown);
});

test("failures keep OpenAI's words", () => {
  expect(modelNotFound("x", []).message).toBe("The model `x` does not exist or you do not have access to it.");
  expect(modelNotFound("x", ["a", "b"]).message).toContain("`a`, `b`");
  expect(unknownUrl("POST", "/v1/x").message).toBe("Invalid URL (POST /v1/x)");
  expect(malformedJson().message).toMatch(/^We could not parse the JSON body of your request\./);
  expect(methodNotAllowed("PUT", "/v1/models", ["GET"]).failure).toMatchObject({
    status: 405,
    headers: { allow: "GET" },
  });
});

test("an image that cannot be used: OpenAI's words and codes in profile exact, the place in profile lean", () => {
  const body = (image: ImageProblem, profile: Profile): unknown =>
    (
      JSON.parse(writeErrorBody(invalidImage(image, "Ours.", "messages[0]").failure, profile).body) as {
        error: unknown;
      }
    ).error;
  const type = "invalid_request_error";
  expect(body({ why: "format" }, exact)).toEqual({
    message:
      "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
    type,
    param: null,
    code: "invalid_image_format",
  });
  expect(body({ why: "url", url: "https://example.com/a.jpg" }, exact)).toEqual({
    message: "Error while downloading https://example.com/a.jpg.",
    type,
    param: null,
    code: "invalid_image_url",
  });
  expect(body({ why: "bytes", bytes: 21 * 2 ** 20, most: 20 * 2 ** 20 }, exact)).toMatchObject({
    message: expect.stringContaining("is below 20 MB in size"),
    code: "image_too_large",
  });
  expect(body({ why: "damaged" }, lean)).toEqual({
    message: "Ours.",
    type,
    param: "messages[0]",
    code: "image_parse_error",
  });
  expect(body({ why: "side", most: 8000 }, exact)).toMatchObject({ message: "Ours.", code: "image_too_large" });
});
