import { expect, test } from "vitest";
import { readChatRequest } from "../chat/request.ts";

const sampling = (bias: unknown): object =>
  readChatRequest({ model: "m", messages: [{ role: "user", content: "Hi" }], logit_bias: bias }, "req_1").request
    .sampling;

test("ids and texts, as an object and as llama.cpp's list", () => {
  const both = { logitBias: { "5": 1.5 }, textBias: [{ text: " word", bias: -1 }] };
  expect(sampling({ "5": 1.5, " word": -1 })).toEqual(both);
  expect(
    sampling([
      [5, 1.5],
      [" word", -1],
    ]),
  ).toEqual(both);
});

test("false bans a token, and digits in the list are a text", () => {
  expect(sampling([["42", false]])).toEqual({ textBias: [{ text: "42", bias: -100 }] });
  expect(sampling({ "42": false })).toEqual({ logitBias: { "42": -100 } });
  expect(sampling([])).toEqual({});
});
