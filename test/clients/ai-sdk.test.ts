import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateObject, generateText, stepCountIs, streamText, tool } from "ai";
import type { LanguageModel } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

/** Vercel's AI SDK 6, through its provider for compatible servers and through the one for OpenAI itself. */
describe.each(["openai-compatible", "openai"])("the AI SDK with its %s provider", (provider) => {
  let server: FixtureServer;
  let model: LanguageModel;
  beforeAll(async () => {
    server = await serveFixture();
    const { baseURL } = server;
    model =
      provider === "openai"
        ? createOpenAI({ baseURL, apiKey: "none" }).chat("programmed")
        : createOpenAICompatible({ name: "truewire", baseURL, includeUsage: true, supportsStructuredOutputs: true })(
            "programmed",
          );
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
