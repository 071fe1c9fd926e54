import { describe, expect, test } from "vitest";
import { FailureError } from "../../core/failure.ts";
import type { ReadChoicesRequest } from "../choices-answer.ts";
import type { ReadOptions } from "../port.ts";
import { exact } from "../profile.ts";
import { readCompletionRequest } from "./request.ts";

function read(members: object, options?: ReadOptions): ReadChoicesRequest {
  return readCompletionRequest({ model: "m", prompt: "Hi", ...members }, "req_1", options);
}

function refusal(members: object, options?: ReadOptions): unknown {
  try {
    read(members, options);
  } catch (error) {
    if (error instanceof FailureError)
      return { message: error.message, param: error.failure.param, code: error.failure.code };
    throw error;
  }
  throw new Error("The request was taken.");
}

test("a minimal request: 16 tokens, which is OpenAI's default", () => {
  expect(read({}).request).toEqual({
    id: "req_1",
    model: "m",
    prompt: { kind: "text", prompts: ["Hi"] },
    sampling: {},
    limits: { maxTokens: 16 },
    wantsUsage: false,
    stream: false,
    extra: {},
    passthrough: { dialect: "completions", body: { model: "m", prompt: "Hi" } },
  });
});

test.each<[unknown, readonly (string | readonly number[])[]]>([
  ["a", ["a"]],
  [
    ["a", "b"],
    ["a", "b"],
  ],
  [[1, 2], [[1, 2]]],
  [
    [[1], [2, 3]],
    [[1], [2, 3]],
  ],
  [null, [""]],
  ["", [""]],
])("prompt %j", (prompt, prompts) => {
  expect(read({ prompt }).request.prompt).toMatchObject({ prompts });
});

test("echo, best_of, suffix, logprobs and a budget of none", () => {
  const { request, requested: asked } = read({
    echo: true,
    best_of: 3,
    n: 2,
    suffix: "end",
    logprobs: 0,
    max_tokens: 0,
  });
  expect(request).toMatchObject({
    prompt: { echo: true, bestOf: 3, suffix: "end" },
    n: 2,
    logprobs: { top: 0 },
    limits: { maxTokens: 0 },
  });
  expect(asked).toMatchObject({ logprobs: true, textOffsets: { byPrompt: [0], choicesPerPrompt: 2 } });
});

test("offsets begin after each prompt, counted in characters; token ids have no text yet", () => {
  expect(read({ prompt: ["Hi", "😀"] }).requested.textOffsets).toEqual({ byPrompt: [2, 1], choicesPerPrompt: 1 });
  expect(read({ prompt: [1, 2] }).requested.textOffsets).toEqual({ byPrompt: [0], choicesPerPrompt: 1 });
});

describe("refusals", () => {
  test.each<[object, unknown]>([
    [{ prompt: undefined }, { param: "prompt", code: "missing_required_parameter" }],
    [{ prompt: [] }, { param: "prompt", code: "empty_array" }],
    [{ prompt: 3 }, { param: "prompt", code: "invalid_type" }],
    [{ prompt: [1, "a"] }, { param: "prompt[1]", code: "invalid_type" }],
    [{ prompt: [-1] }, { param: "prompt[0]", code: "integer_below_min_value" }],
    [
      { max_tokens: -2 },
      {
        message: "Invalid 'max_tokens': integer below minimum value. Expected a value >= 0, but got -2 instead.",
        param: "max_tokens",
        code: "integer_below_min_value",
      },
    ],
    [{ logprobs: true }, { param: "logprobs", code: "invalid_type" }],
    [{ logprobs: 21 }, { param: "logprobs", code: "integer_above_max_value" }],
    [{ best_of: 21 }, { param: "best_of", code: "integer_above_max_value" }],
    [{ best_of: 1, n: 2 }, { param: "best_of" }],
    [{ best_of: 2, stream: true }, { param: "best_of" }],
    [{ mirostat: 1 }, { param: "mirostat", code: "unsupported_parameter" }],
  ])("%j", (members, expected) => {
    expect(refusal(members)).toMatchObject(expected as object);
  });

  test("logprobs end at 5 in profile openai", () => {
    expect(refusal({ logprobs: 6 }, { profile: exact })).toMatchObject({ code: "integer_above_max_value" });
    expect(read({ logprobs: 6 }).request.logprobs).toEqual({ top: 6 });
  });
});

test("an answer that repeats its prompt has no estimate of its tokens", () => {
  const estimateOf = (body: object): number | undefined =>
    readCompletionRequest({ model: "m", prompt: "12345678", ...body }, "req_1").requested.estimatePrompt?.();
  expect(estimateOf({})).toBe(2);
  expect(estimateOf({ echo: true })).toBeUndefined();
});
