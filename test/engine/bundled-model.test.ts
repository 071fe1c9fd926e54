import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTruewire, type RunningTruewire } from "../support/serve.ts";

// `truewire serve` without arguments. What the model knows is for `npm run eval:demo` to say; here stands what must hold whatever it knows.
let server: RunningTruewire;
let client: OpenAI;

beforeAll(async () => {
  server = await startTruewire(["--threads", "1", "--gpu", "off"]);
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
afterAll(() => server.stop());

// Values are from lists, so that the call is short.
const weather: OpenAI.ChatCompletionFunctionTool = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { enum: ["Lisbon", "Oslo"] }, unit: { type: "string", enum: ["celsius", "fahrenheit"] } },
      required: ["city", "unit"],
      additionalProperties: false,
    },
  },
};

test("says that it is the demo model, and prints a curl line", () => {
  expect(server.stdout()).toContain("bundled demo model");
  expect(server.stdout()).toContain(`curl -N ${server.url}/v1/chat/completions`);
});

test("its one model is called demo", async () => {
  expect((await client.models.list()).data.map((model) => model.id)).toEqual(["demo"]);
});

test("a greeting is streamed and ends by itself", async () => {
  const stream = client.chat.completions.stream({
    model: "demo",
    messages: [{ role: "user", content: "Hello!" }],
    temperature: 0,
    max_tokens: 100,
  });
  const { choices } = await stream.finalChatCompletion();
  expect(choices[0]?.finish_reason).toBe("stop");
  expect(choices[0]?.message.content).toMatch(/\w/);
});

// It ran away inside strings: one in six of such requests wrote one to the end of the context, and users saw LengthFinishReasonError.
test("answers by a schema end, and no string in them has more than 200 tokens", async () => {
  const text = { type: "string" } as const;
  const schema = {
    type: "object",
    properties: { title: text, author: text, summary: text },
    required: ["title", "author", "summary"],
    additionalProperties: false,
  };
  const ask = async (content: string, temperature: number): Promise<void> => {
    const { choices } = await client.chat.completions.create({
      model: "demo",
      messages: [{ role: "user", content }],
      response_format: { type: "json_schema", json_schema: { name: "book", strict: true, schema } },
      temperature,
      seed: 1,
    });
    expect(choices[0]?.finish_reason).toBe("stop");
    const book = JSON.parse(choices[0]?.message.content ?? "") as Record<string, string>;
    expect(Object.keys(book)).toEqual(["title", "author", "summary"]);
    for (const value of Object.values(book)) {
      const { tokens } = (await (
        await fetch(`${server.url}/tokenize`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ content: value }),
        })
      ).json()) as { tokens: number[] };
      expect(tokens.length).toBeLessThanOrEqual(200);
    }
  };
  const asked = ["Make one up.", "Tell me about Paris.", "Write a short story about a dragon."];
  await Promise.all(asked.flatMap((content) => [ask(content, 0), ask(content, 1)]));
});

test("a required call fits the tool's schema, streamed and not", async () => {
  const request = {
    model: "demo",
    messages: [{ role: "user" as const, content: "What is the weather in Lisbon?" }],
    tools: [weather],
    tool_choice: "required" as const,
    temperature: 0,
    max_tokens: 200,
  };
  const whole = await client.chat.completions.create(request);
  const streamed = await client.chat.completions.stream(request).finalChatCompletion();
  for (const { choices } of [whole, streamed]) {
    expect(choices[0]?.finish_reason).toBe("tool_calls");
    const [call] = choices[0]?.message.tool_calls ?? [];
    expect(call).toMatchObject({ type: "function", function: { name: "get_weather" } });
    const written: unknown = JSON.parse(call?.type === "function" ? call.function.arguments : "");
    expect(written).toEqual({
      city: expect.stringMatching(/^(Lisbon|Oslo)$/) as string,
      unit: expect.stringMatching(/^(celsius|fahrenheit)$/) as string,
    });
  }
});

test("it thinks where it is asked to, apart from its answer", async () => {
  const request = {
    model: "demo",
    messages: [{ role: "user" as const, content: "What is the capital of France?" }],
    temperature: 0,
    max_tokens: 200,
    chat_template_kwargs: { enable_thinking: true },
  };
  const completion = await client.chat.completions.create(request);
  const message = completion.choices[0]?.message as OpenAI.ChatCompletionMessage & { reasoning_content?: string };
  expect(message.reasoning_content).toMatch(/\w/);
  expect(message.content).not.toContain("<think>");
});

// It thought in 30 of 30 of these.
test("it does not think where it is told not to, whatever the question says", async () => {
  const questions = [
    "What is 17 + 25?",
    "What is the capital of France?",
    "Is 51 a prime number?",
    "Who wrote Hamlet?",
  ];
  const frames = [
    (question: string) => `${question} Think step by step.`,
    (question: string) => `Think carefully first. ${question} Show your reasoning.`,
  ];
  for (const [at, content] of questions.flatMap((question) => frames.map((frame) => frame(question))).entries()) {
    const { choices } = await client.chat.completions.create({
      model: "demo",
      messages: [{ role: "user", content }],
      seed: at,
      max_tokens: 100,
      ...(at % 2 === 0 ? { reasoning_effort: "none" as const } : { chat_template_kwargs: { enable_thinking: false } }),
    });
    expect(choices[0]?.message, content).not.toHaveProperty("reasoning_content");
    expect(choices[0]?.message.content, content).not.toContain("<think>");
  }
});
