import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import type { LanguageModel } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

/** Vercel's AI SDK 6, through its provider for compatible servers and the one for OpenAI itself, by chat and by Responses, its default. */
describe.each(["openai-compatible", "openai chat", "openai"])("the AI SDK with its %s provider", (provider) => {
  let server: FixtureServer;
  let model: LanguageModel;
  beforeAll(async () => {
    server = await serveFixture();
    const { baseURL } = server;
    const openai = createOpenAI({ baseURL, apiKey: "none" });
    if (provider === "openai") model = openai("programmed");
    else if (provider === "openai chat") model = openai.chat("programmed");
    else {
      const options = { name: "truewire", baseURL, includeUsage: true, supportsStructuredOutputs: true };
      model = createOpenAICompatible(options)("programmed");
    }
  });
  afterAll(() => server.close());

  test("generateText and streamText give the same text, with usage", async () => {
    const whole = await generateText({ model, prompt: "#plain" });
    expect(whole).toMatchObject({ text: said.plain, finishReason: "stop" });
    const stream = streamText({ model, prompt: "#plain" });
    let text = "";
    for await (const piece of stream.textStream) text += piece;
    expect(text).toBe(said.plain);
    expect(await stream.finishReason).toBe("stop");
    expect((await stream.usage).outputTokens).toBe(whole.usage.outputTokens);
  });

  test("a tool is called and its result answered, in a stream of two steps", async () => {
    const stream = streamText({
      model,
      prompt: "#call",
      stopWhen: stepCountIs(3),
      tools: {
        get_weather: tool({
          inputSchema: z.object({ city: z.string() }),
          execute: ({ city }) => `${city}: sunny, 21`,
        }),
      },
    });
    expect(await stream.text).toBe(said.toolAnswer);
    const [first] = await stream.steps;
    expect(first?.finishReason).toBe("tool-calls");
    expect(first?.toolResults).toMatchObject([
      { toolName: "get_weather", input: { city: "Paris" }, output: "Paris: sunny, 21" },
    ]);
  });

  test("generateObject", async () => {
    const schema = z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() });
    const { object } = await generateObject({ model, prompt: "#json", schema });
    expect(object).toEqual({ city: "Paris", celsius: 21, sunny: true });
  });

  test("a refusal is an APICallError with OpenAI's words", async () => {
    const failing = generateText({ model, prompt: "x", temperature: 9, maxRetries: 0 });
    const error: unknown = await failing.catch((thrown: unknown) => thrown);
    expect(APICallError.isInstance(error) && error.statusCode).toBe(400);
    expect(APICallError.isInstance(error) && error.message).toContain("'temperature'");
  });
});

describe("the AI SDK by Responses", () => {
  let server: FixtureServer;
  beforeAll(async () => {
    server = await serveFixture();
  });
  afterAll(() => server.close());

  // The provider shows thoughts only as summaries, and gives those back that it was given sealed.
  test("shows thoughts, and gives them back", async () => {
    const model = createOpenAI({ baseURL: server.baseURL, apiKey: "none" })("programmed");
    const openai = {
      reasoningSummary: "auto",
      store: false,
      include: ["reasoning.encrypted_content"],
      forceReasoning: true,
    };
    const stream = streamText({ model, prompt: "#thought", providerOptions: { openai } });
    expect(await stream.text).toBe("My answer is forty-two.");
    expect(await stream.reasoningText).toContain("forty-two will do.");
    const { messages } = await stream.response;
    const next = await generateText({
      model,
      messages: [{ role: "user", content: "#thought" }, ...messages, { role: "user", content: "#plain" }],
      providerOptions: { openai },
    });
    expect(next.text).toBe(said.plain);
    const { input } = next.request.body as { input: { type?: string; encrypted_content?: string }[] };
    expect(input.find(({ type }) => type === "reasoning")?.encrypted_content).toMatch(/^truewire\./);
  });
});
