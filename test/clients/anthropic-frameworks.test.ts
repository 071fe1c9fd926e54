import { createAnthropic } from "@ai-sdk/anthropic";
import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool as langChainTool } from "@langchain/core/tools";
import { APICallError, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

let server: FixtureServer;
beforeAll(async () => {
  server = await serveFixture("--wire", "exact");
});
afterAll(() => server.close());

const city = z.object({ city: z.string() });
const thought = "The user wants a number; forty-two will do.";

/** Vercel's AI SDK 6 with its provider for Anthropic. */
describe("the AI SDK with its Anthropic provider", () => {
  const model = () => createAnthropic({ baseURL: server.baseURL, apiKey: "none" })("programmed");

  test("generateText and streamText give the same text, with usage", async () => {
    const whole = await generateText({ model: model(), prompt: "#plain" });
    expect(whole).toMatchObject({ text: said.plain, finishReason: "stop" });
    const stream = streamText({ model: model(), prompt: "#plain" });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    expect(text).toBe(said.plain);
    expect(await stream.finishReason).toBe("stop");
    expect((await stream.usage).outputTokens).toBe(whole.usage.outputTokens);
  });

  test("a tool is called and its result answered, in a stream of two steps", async () => {
    const stream = streamText({
      model: model(),
      prompt: "#call",
      stopWhen: stepCountIs(3),
      tools: { get_weather: tool({ inputSchema: city, execute: ({ city }) => `${city}: sunny, 21` }) },
    });
    expect(await stream.text).toBe(said.toolAnswer);
    const [first] = await stream.steps;
    expect(first?.finishReason).toBe("tool-calls");
    expect(first?.toolResults).toMatchObject([{ toolName: "get_weather", output: "Paris: sunny, 21" }]);
  });

  test("thinking comes back with its signature", async () => {
    const providerOptions = { anthropic: { thinking: { type: "enabled", budgetTokens: 1024 } } };
    const { reasoningText, text, response } = await generateText({
      model: model(),
      prompt: "#thought",
      providerOptions,
    });
    expect([reasoningText, text]).toEqual([thought, "My answer is forty-two."]);
    const messages = [
      { role: "user" as const, content: "#thought" },
      ...response.messages,
      { role: "user" as const, content: "#plain" },
    ];
    const again = streamText({ model: model(), messages, providerOptions });
    expect(await again.text).toBe(said.plain);
  });

  test("generateObject", async () => {
    const schema = z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() });
    const providerOptions = { anthropic: { structuredOutputMode: "outputFormat" } };
    const { object } = await generateObject({ model: model(), prompt: "#json", schema, providerOptions });
    expect(object).toEqual({ city: "Paris", celsius: 21, sunny: true });
  });

  test("a refusal is an APICallError with Anthropic's words", async () => {
    const failing = generateText({ model: model(), prompt: "word ".repeat(9000), maxRetries: 0 });
    const error: unknown = await failing.catch((thrown: unknown) => thrown);
    expect(APICallError.isInstance(error) && error.statusCode).toBe(400);
    expect(APICallError.isInstance(error) && error.message).toMatch(/^prompt is too long: \d+ tokens > \d+ maximum$/);
  });
});

describe("LangChain.js with its Anthropic class", () => {
  const model = (fields: object = {}) =>
    new ChatAnthropic({
      model: "programmed",
      apiKey: "none",
      anthropicApiUrl: server.url,
      maxRetries: 0,
      maxTokens: 200,
      ...fields,
    });

  test("invoke and stream give the same text, with usage", async () => {
    const whole = await model().invoke("#unicode");
    expect(whole.text).toBe(said.unicode);
    expect(whole.usage_metadata?.output_tokens).toBeGreaterThan(3);
    let text = "";
    for await (const chunk of await model().stream("#unicode")) text += chunk.text;
    expect(text).toBe(said.unicode);
  });

  test("tool calls in a stream, and the answer to their result", async () => {
    const weather = langChainTool(({ city }) => `${city}: sunny, 21`, { name: "get_weather", schema: city });
    const bound = model().bindTools([weather]);
    const chunks = [];
    for await (const chunk of await bound.stream("#call")) chunks.push(chunk);
    const [first, ...others] = chunks;
    if (!first) throw new Error("no chunk came");
    const message = others.reduce((all, chunk) => all.concat(chunk), first);
    expect(message.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
    const [call] = message.tool_calls ?? [];
    const result = new ToolMessage({ content: "sunny, 21", tool_call_id: call?.id ?? "" });
    const answer = await bound.invoke([new HumanMessage("#call"), message, result]);
    expect(answer.text).toBe(said.toolAnswer);
  });

  test("thinking", async () => {
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const answer = await model({ thinking, maxTokens: 2048 }).invoke("#thought");
    expect(answer.content).toMatchObject([{ type: "thinking", thinking: thought }, { type: "text" }]);
  });
});
