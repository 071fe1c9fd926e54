import { describe, expect, test } from "vitest";
import type { GenerationRequest } from "../core/request.ts";
import { readChatRequest } from "./chat/request.ts";
import { writeChatRequest } from "./chat/send.ts";
import { readCompletionRequest } from "./completions/request.ts";
import { writeCompletionsRequest } from "./completions/send.ts";
import { readMessageRequest } from "./messages/request.ts";
import { writeMessageRequest } from "./messages/send.ts";
import type { ReadOptions } from "./port.ts";
import { exact, lean } from "./profile.ts";
import { readResponsesRequest } from "./responses/request.ts";
import { writeResponsesRequest } from "./responses/send.ts";

type Read = (body: unknown, id: string, options?: ReadOptions) => { readonly request: GenerationRequest };
type Write = (request: GenerationRequest, profile: object) => Readonly<Record<string, unknown>>;

const messages = [{ role: "user", content: "Hi" }];

/** Each API with a member that limits the answer, what an upstream of the same API gets for "no limit", and the vendor's refusal. */
const apis: readonly (readonly [string, Read, Write, object, string, unknown, RegExp])[] = [
  ["chat", readChatRequest, writeChatRequest, { messages }, "max_tokens", undefined, />= 1, but got -1/],
  ["chat", readChatRequest, writeChatRequest, { messages }, "max_completion_tokens", undefined, />= 1, but got -1/],
  [
    "completions",
    readCompletionRequest,
    writeCompletionsRequest,
    { prompt: "Hi" },
    "max_tokens",
    null,
    />= 0, but got -1/,
  ],
  [
    "responses",
    readResponsesRequest,
    writeResponsesRequest,
    { input: "Hi" },
    "max_output_tokens",
    undefined,
    /but got -1/,
  ],
  ["messages", readMessageRequest, writeMessageRequest, { messages }, "max_tokens", 8192, /greater than or equal to 0/],
];

// The lean form took `n_predict` and `num_predict` of -1, and refused what clients of LM Studio and KoboldCpp send.
describe.each(apis)("a limit of -1 in %s", (_, read, write, body, member, sent, refusal) => {
  const request = { model: "m", ...body, [member]: -1 };

  test.each([{ profile: lean }, { profile: lean, forwards: true }])(
    `${member} is no limit in profile lean`,
    (options) => {
      const { request: neutral } = read(request, "r", options);
      expect(neutral.limits.maxTokens).toBeUndefined();
      expect(write(neutral, {})[member]).toBe(sent);
    },
  );

  test(`${member} is refused in profile exact, and any other negative limit in both`, () => {
    expect(() => read(request, "r", { profile: exact })).toThrow(refusal);
    expect(() => read({ ...request, [member]: -2 }, "r", { profile: lean })).toThrow();
  });
});

test("the smaller of two limits counts, and no limit is none of them", () => {
  const both = (one: number, other: number): unknown =>
    readChatRequest({ model: "m", messages, max_tokens: one, max_completion_tokens: other }, "r").request.limits
      .maxTokens;
  expect([both(-1, 7), both(7, -1), both(-1, -1)]).toEqual([7, 7, undefined]);
});
