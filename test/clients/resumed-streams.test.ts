import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import type { LanguageModel } from "ai";
import { ChatOpenAI } from "@langchain/openai";
import OpenAI from "openai";
import NewestOpenAI from "openai-7";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { readChatStream } from "../../src/index.ts";
import { scenarioSources, serveScenarios } from "../messages/scenario-server.ts";

/*
 * Resumable streams have a line `id:` in each event. Clients that know nothing of it read the same answer, over a local model, a
 * program, and a server of each API.
 */

const apiKey = "sk-none";
const resumable = { "x-truewire-resume": "30s" };
const text = "Say it. #text";
const messages = [{ role: "user" as const, content: text }];

// Anthropic's provider warns about each request to a model whose token limit it does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

async function streamed(model: LanguageModel): Promise<string> {
  return streamText({ model, prompt: text, maxRetries: 0 }).text;
}

const clients: Readonly<
  Record<string, (baseURL: string, model: string, headers: Record<string, string>) => Promise<unknown>>
> = {
  "openai 6, chat": (baseURL, model, headers) =>
    new OpenAI({ baseURL, apiKey, defaultHeaders: headers }).chat.completions
      .stream({ model, messages })
      .finalContent(),
  "openai 7, chat": (baseURL, model, headers) =>
    new NewestOpenAI({ baseURL, apiKey, defaultHeaders: headers }).chat.completions
      .stream({ model, messages })
      .finalContent(),
  "openai 7, responses": async (baseURL, model, headers) => {
    const client = new NewestOpenAI({ baseURL, apiKey, defaultHeaders: headers });
    return (await client.responses.stream({ model, input: text }).finalResponse()).output_text;
  },
  "Anthropic's SDK": (baseURL, model, headers) =>
    new Anthropic({ baseURL: baseURL.replace(/\/v1$/, ""), apiKey, defaultHeaders: headers }).messages
      .stream({ model, messages, max_tokens: 1000 })
      .finalText(),
  "AI SDK (eventsource-parser), chat": (baseURL, model, headers) =>
    streamed(createOpenAICompatible({ name: "x", baseURL, apiKey, headers })(model)),
  "AI SDK, responses": (baseURL, model, headers) =>
    streamed(createOpenAI({ baseURL, apiKey, headers }).responses(model)),
  "AI SDK, messages": (baseURL, model, headers) => streamed(createAnthropic({ baseURL, apiKey, headers })(model)),
  "LangChain.js": async (baseURL, model, headers) => {
    const chat = new ChatOpenAI({ model, apiKey, configuration: { baseURL, defaultHeaders: headers } });
    let content = "";
    for await (const chunk of await chat.stream(text)) content += String(chunk.content);
    return content;
  },
  "Truewire's readChatStream": async (baseURL, model, headers) => {
    const response = await fetch(`${baseURL}/chat/completions`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ model, messages, stream: true }),
    });
    let content = "";
    for await (const event of readChatStream(response)) if (event.type === "text-delta") content += event.text;
    return content;
  },
};

let server: TruewireServer;
beforeAll(async () => {
  server = await serveScenarios();
});
afterAll(() => server.close());

// The source of completions is no model for chats.
const sources = scenarioSources.filter((source) => source !== "completions upstream");

describe.each(sources)("over a %s", (model) => {
  test("the events have ids if the client asks for that", async () => {
    const stream = async (headers: Record<string, string>): Promise<string[]> => {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ model, messages, stream: true }),
      });
      return (await response.text()).split("\n\n").slice(0, -1);
    };
    const events = await stream(resumable);
    expect(events.length).toBeGreaterThan(2);
    expect(events.map((event) => event.split("\n")[0])).toEqual(events.map((_, number) => `id: ${number}`));
    expect((await stream({})).join("\n")).not.toMatch(/^id:/m);
  });

  test.each(Object.keys(clients))("%s reads the same answer", async (name) => {
    const read = (headers: Record<string, string>) => clients[name]?.(`${server.url}/v1`, model, headers);
    const answer = await read(resumable);
    expect(answer).toMatch(/\w/);
    expect(answer).toBe(await read({}));
  });
});
