import { afterAll, beforeAll, expect, test } from "vitest";
import type { GenerationEvent } from "../../src/wire/core/events.ts";
import type { Tool } from "../../src/wire/core/message.ts";
import { answerOf, standardScripts } from "../fixtures/scripts.ts";
import { chatPrompt, openProgrammed, type TestEngine } from "./local-engine.ts";

const weather: Tool = {
  name: "get_weather",
  parameters: { type: "object", properties: { city: { type: "string" }, unit: { type: "string" } } },
};

let local: TestEngine;
beforeAll(async () => {
  local = await openProgrammed();
});
afterAll(() => local.close());

test.each(["greeting", "plain", "unicode", "tool-answer", "json", "middle", "stop"] as const)(
  "the script %s comes back letter by letter",
  async (name) => {
    const { choices, end } = await local.chat(`Say #${name}, please.`);
    expect(choices).toMatchObject([{ text: answerOf(standardScripts[name]), finish: { reason: "stop" } }]);
    expect(end).toEqual({ kind: "done" });
  },
);

test("a user who names no script is greeted", async () => {
  expect((await local.chat("Good morning")).choices[0]?.text).toBe(answerOf(standardScripts.greeting));
});

test("no event ever holds half a character", async () => {
  for await (const batch of local.batches({
    prompt: { kind: "text", prompts: ["<|script:unicode|>"] },
  })) {
    expect(JSON.stringify(batch)).not.toMatch(/\ufffd|\\ud[89a-f]/i);
  }
});

test("one call: its name and arguments, finish reason tool-calls, content null", async () => {
  const { choices } = await local.chat("#call", { tools: [weather] });
  expect(choices).toMatchObject([
    {
      text: null,
      toolCalls: [{ name: "get_weather", arguments: '{"city": "Paris"}', status: "succeeded" }],
      finish: { reason: "tool-calls" },
    },
  ]);
  expect(choices[0]?.toolCalls[0]?.id).toMatch(/^call_[0-9A-Za-z]{24}$/);
});

test("two calls, and text before a call", async () => {
  const two = await local.chat("#calls", { tools: [weather] });
  expect(two.choices[0]?.toolCalls.map((call) => JSON.parse(call.arguments) as unknown)).toEqual([
    { city: "Paris" },
    { city: "Tokyo", unit: "celsius" },
  ]);
  const mixed = await local.chat("#text-call", { tools: [weather] });
  expect(mixed.choices[0]).toMatchObject({ text: expect.stringMatching(/^I will look that up for you\./) as string });
  expect(mixed.choices[0]?.toolCalls).toHaveLength(1);
});

test("without tools, or with tool_choice none, call markup is text", async () => {
  const markup = answerOf(standardScripts.call);
  const asked = [{}, { tools: [weather], toolChoice: { type: "none" } as const }];
  for (const request of asked) {
    const { choices } = await local.chat("#call", request);
    expect(choices[0]).toMatchObject({ text: markup, toolCalls: [], finish: { reason: "stop" } });
  }
});

test("after a tool's result the model answers with text", async () => {
  const { choices, end } = await local.ask({
    tools: [weather],
    prompt: {
      kind: "chat",
      template: {},
      messages: [
        { role: "user", content: "#call" },
        {
          role: "assistant",
          content: [{ type: "tool-call", id: "call_1", name: "get_weather", arguments: '{"city": "Paris"}' }],
        },
        { role: "tool", toolCallId: "call_1", content: "sunny, 21 degrees" },
      ],
    },
  });
  expect(end).toEqual({ kind: "done" });
  expect(choices[0]?.text).toBe(answerOf(standardScripts["tool-answer"]));
});

test("what the prompt costs is known before the answer begins, and again when it is over", async () => {
  const events: GenerationEvent[] = [];
  for await (const batch of local.batches({ prompt: chatPrompt("#plain"), n: 2 })) events.push(...batch);
  const [first] = events;
  const last = events.findLast((event) => event.type === "usage");
  expect(first).toMatchObject({ type: "usage", usage: { completionTokens: 0 } });
  expect(last?.usage.promptTokens).toBeGreaterThan(0);
  expect(first?.type === "usage" && first.usage.promptTokens).toBe(last?.usage.promptTokens);
  expect(events.filter((event) => event.type === "usage")).toHaveLength(2);
});

test("a thought is reasoning, and its tokens are counted", async () => {
  const { choices, usage } = await local.chat("#thought");
  expect(choices[0]).toMatchObject({
    reasoning: "The user wants a number; forty-two will do.",
    text: "My answer is forty-two.",
  });
  expect(usage).toMatchObject({ completionTokens: 13, completionDetails: { reasoning_tokens: 9 } });
});

test("a thought stays in the text where that is asked for, with its markers", async () => {
  const { choices, usage } = await local.chat("#thought", { reasoning: { inText: true } });
  expect(choices[0]).toMatchObject({ reasoning: null, text: answerOf(standardScripts.thought) });
  expect(usage?.completionDetails).toEqual({ reasoning_tokens: 9 });
});

// The demo model bounded its strings, and then ran away in its thoughts: 1,372 tokens before an answer of 100.
test("a model's default bounds its thoughts, unless the request has a budget of its own", async () => {
  const bounded = await openProgrammed({ defaults: { maxReasoningTokens: 3 } });
  expect((await bounded.chat("#thought")).choices[0]?.reasoning).toBe("The user wants a num");
  const { choices } = await bounded.chat("#thought", { reasoning: { budgetTokens: 100 } });
  expect(choices[0]?.reasoning).toBe("The user wants a number; forty-two will do.");
  await bounded.close();
});

test("a thought that uses the budget up ends with length and no text", async () => {
  const { choices } = await local.chat("#thought", { limits: { maxTokens: 4 } });
  expect(choices[0]).toMatchObject({ reasoning: "The user wants a num", text: null, finish: { reason: "length" } });
});

test("a call that the budget cuts ends with length; what was streamed stays", async () => {
  const whole = await local.chat("#calls", { tools: [weather] });
  const tokens = whole.usage?.completionTokens ?? 0;
  const { choices } = await local.chat("#calls", { tools: [weather], limits: { maxTokens: tokens - 3 } });
  expect(choices[0]?.finish?.reason).toBe("length");
  expect(choices[0]?.toolCalls[0]?.arguments).toBe('{"city": "Paris"}');
});

// The end of the text used to close what a cut call had left open, which made arguments that the model never wrote.
test("wherever the budget cuts, a call has nothing that the model did not write", async () => {
  const whole = await local.chat("#calls", { tools: [weather] });
  const written = whole.choices[0]?.toolCalls.map((call) => call.arguments) ?? [];
  const budgets = Array.from({ length: (whole.usage?.completionTokens ?? 0) - 1 }, (_, i) => i + 1);
  for (const maxTokens of budgets) {
    const { choices } = await local.chat("#calls", { tools: [weather], limits: { maxTokens } });
    expect(choices[0]?.finish?.reason).toBe("length");
    for (const [i, call] of choices[0]?.toolCalls.entries() ?? []) {
      expect(written[i]?.slice(0, call.arguments.length)).toBe(call.arguments);
    }
  }
});

test.each([
  ["STOP", "Count: one, almost STO, two, three → four ", 9],
  ["→", "Count: one, almost STO, two, three ", 7],
  ["STOP five", "Count: one, almost STO, two, three → four ", 9],
  ["never there", answerOf(standardScripts.stop), 11],
])("the stop string %j, split over tokens, ends the text before it and no step is lost", async (stop, text, tokens) => {
  const { choices, usage } = await local.chat("#stop", { limits: { stop: [stop] } });
  expect(choices[0]?.text).toBe(text);
  expect(choices[0]?.finish).toEqual(stop === "never there" ? { reason: "stop" } : { reason: "stop", stop });
  expect(usage?.completionTokens).toBe(tokens);
});

test("a stop string does not end reasoning or calls", async () => {
  const thought = await local.chat("#thought", { limits: { stop: ["forty-two"] } });
  expect(thought.choices[0]).toMatchObject({
    reasoning: "The user wants a number; forty-two will do.",
    text: "My answer is ",
    finish: { stop: "forty-two" },
  });
  const call = await local.chat("#call", { tools: [weather], limits: { stop: ["Paris"] } });
  expect(call.choices[0]?.toolCalls[0]?.arguments).toBe('{"city": "Paris"}');
});

test("max_tokens 1 gives one token", async () => {
  const { choices, usage } = await local.chat("#plain", { limits: { maxTokens: 1 } });
  expect(choices[0]).toMatchObject({ text: "The", finish: { reason: "length" } });
  expect(usage?.completionTokens).toBe(1);
});
