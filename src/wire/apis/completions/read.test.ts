import { expect, test } from "vitest";
import { orderViolation } from "../../../../test/upstream/legal-order.ts";
import { accumulate } from "../../core/accumulate.ts";
import type { Generation } from "../../core/accumulate.ts";
import type { GenerationEvent } from "../../core/events.ts";
import { readResponseBody } from "../tolerant/read-response.ts";
import { completionReader } from "./read.ts";

function read(stream: string): Generation & { repairs: readonly string[] } {
  const reader = completionReader({ newCallId: () => "x" });
  const events: GenerationEvent[] = [];
  for (const character of stream) events.push(...reader.push(character));
  events.push(...reader.end());
  expect(orderViolation(events)).toBeNull();
  return { ...accumulate(events), repairs: reader.repairs.list().map(({ id }) => id) };
}

const chunk = (members: object, rest: object = {}): string =>
  `data: ${JSON.stringify({ id: "cmpl-1", object: "text_completion", created: 1, model: "m", choices: [{ index: 0, logprobs: null, finish_reason: null, ...members }], ...rest })}\n\n`;
const done = "data: [DONE]\n\n";

test.each<[string, string, string[]]>([
  [
    "OpenAI's own: length on the last text",
    chunk({ text: "Once" }) + chunk({ text: " more", finish_reason: "length" }),
    [],
  ],
  [
    "the finish alone",
    chunk({ text: "Once" }) + chunk({ text: " more" }) + chunk({ text: "", finish_reason: "length" }),
    [],
  ],
  [
    "chat deltas in its place",
    chunk({ delta: { content: "Once" } }) + chunk({ delta: { content: " more" }, finish_reason: "length" }),
    ["content"],
  ],
  [
    "an empty text in between",
    chunk({ text: "Once" }) + chunk({ text: "" }) + chunk({ text: " more", finish_reason: "length" }),
    ["empty-delta"],
  ],
  [
    "no finish at all but max_tokens",
    chunk({ text: "Once more" }) + chunk({ text: "", finish_reason: "max_tokens" }),
    ["finish-reason"],
  ],
])("%s", (_, body, repairs) => {
  const result = read(body + done);
  expect(result.choices).toMatchObject([{ text: "Once more", finish: { reason: "length" } }]);
  expect(result.end.kind).toBe("done");
  expect(result.repairs).toEqual(repairs);
});

test("several prompts' choices keep their numbers, and usage comes last", () => {
  const usage = { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 };
  const last = `data: ${JSON.stringify({ id: "cmpl-1", object: "text_completion", created: 1, model: "m", choices: [], usage })}\n\n`;
  const body =
    chunk({ index: 1, text: "b" }) +
    chunk({ text: "a" }) +
    chunk({ text: "", finish_reason: "stop" }) +
    chunk({ index: 1, text: "", finish_reason: "stop" });
  const result = read(body + last + done);
  expect(result.choices.map(({ text }) => text)).toEqual(["a", "b"]);
  expect(result.usage).toEqual({ promptTokens: 2, completionTokens: 2 });
});

test("logprobs as parallel lists", () => {
  const logprobs = {
    tokens: ["On", "ce"],
    token_logprobs: [-0.5, -0.25],
    top_logprobs: [{ On: -0.5, In: -2 }, null],
    text_offset: [0, 2],
  };
  const [choice] = read(chunk({ text: "Once", logprobs, finish_reason: "stop" }) + done).choices;
  expect(choice?.textLogprobs).toMatchObject([
    { token: "On", logprob: -0.5, top: [{ token: "On" }, { token: "In", logprob: -2 }] },
    { token: "ce", logprob: -0.25, top: [] },
  ]);
});

test("whole answers: JSON, a stream in its place, a page", () => {
  const options = { newCallId: (): string => "x" };
  const body = JSON.stringify({
    id: "cmpl-1",
    object: "text_completion",
    created: 1,
    model: "m",
    choices: [{ index: 0, text: "Hi", finish_reason: "stop" }],
  });
  expect(accumulate(readResponseBody(body, completionReader(options)))).toMatchObject({
    choices: [{ text: "Hi" }],
    end: { kind: "done" },
  });
  expect(
    accumulate(readResponseBody(chunk({ text: "Hi", finish_reason: "stop" }) + done, completionReader(options))),
  ).toMatchObject({
    choices: [{ text: "Hi" }],
    end: { kind: "done" },
  });
  expect(
    accumulate(readResponseBody("<html><title>Oh no</title></html>", completionReader(options))).end,
  ).toMatchObject({
    failure: { message: "Oh no", status: 502 },
  });
  expect(accumulate(readResponseBody("", completionReader(options))).end).toMatchObject({
    failure: { message: "The upstream's answer is empty." },
  });
});
