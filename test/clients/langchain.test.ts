import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAI } from "@langchain/openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { said, serveFixture } from "../support/fixture-server.ts";
import type { FixtureServer } from "../support/fixture-server.ts";

describe.each([false, true])("LangChain.js, by Responses: %s", (useResponsesApi) => {
  let server: FixtureServer;
  let model: ChatOpenAI;
  beforeAll(async () => {
    server = await serveFixture();
    const configuration = { baseURL: server.baseURL };
    model = new ChatOpenAI({ model: "programmed", apiKey: "none", maxRetries: 0, configuration, useResponsesApi });
  });
  afterAll(() => server.close());

  test("invoke and stream give the same text, with usage", async () => {
    const whole = await model.invoke("#unicode");
    expect(whole.text).toBe(said.unicode);
    expect(whole.usage_metadata?.output_tokens).toBeGreaterThan(3);
    let text = "";
    for await (const chunk of await model.stream("#unicode")) text += chunk.text;
    expect(text).toBe(said.unicode);
  });

  test("tool calls in a stream, and the answer to their result", async () => {
    const weather = tool(({ city }) => `${city}: sunny, 21`, {
      name: "get_weather",
      schema: z.object({ city: z.string() }),
    });
    const bound = model.bindTools([weather]);
    const chunks = [];
    for await (const chunk of await bound.stream("#call")) chunks.push(chunk);
    const message = chunks.slice(1).reduce((all, chunk) => all.concat(chunk), chunks[0] ?? fail("no chunk came"));
    expect(message.tool_calls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
    const [call] = message.tool_calls ?? [];
    const result = new ToolMessage({ content: "sunny, 21", tool_call_id: call?.id ?? "" });
    const answer = await bound.invoke([new HumanMessage("#call"), message, result]);
    expect(answer.text).toBe(said.toolAnswer);
  });

  test("structured output", async () => {
    const schema = z.object({ city: z.string(), celsius: z.number(), sunny: z.boolean() });
    const structured = model.withStructuredOutput(schema, { name: "weather", method: "jsonSchema" });
    expect(await structured.invoke("#json")).toEqual({ city: "Paris", celsius: 21, sunny: true });
  });

  test("the legacy completions class", async () => {
    const legacy = new OpenAI({
      model: "programmed",
      apiKey: "none",
      maxRetries: 0,
      configuration: { baseURL: server.baseURL },
    });
    expect(await legacy.invoke("<|script:plain|>")).toBe(said.plain);
  });
});

function fail(message: string): never {
  throw new Error(message);
}
