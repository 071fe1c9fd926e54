import Anthropic from "@anthropic-ai/sdk";
import { generateText, isStepCount, streamText, tool } from "ai-7";
import type { LanguageModel } from "ai-7";
import { createAnthropic } from "ai-7-anthropic";
import { createOpenAICompatible } from "ai-7-compatible";
import { createOpenAI } from "ai-7-openai";
import { type Message, Ollama } from "ollama";
import OpenAI from "openai-7";
import type { RunnableToolFunctionWithParse } from "openai-7/lib/RunnableFunction";
import { Agent, OpenAIProvider, Runner, tool as agentTool } from "openai-agents-20";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { TruewireServer } from "../../src/serve/app/create-server.ts";
import { scenarioSources, serveScenarios } from "../messages/scenario-server.ts";
import { dailyPart } from "../support/runs.ts";

/*
 * The newest SDKs of the vendors and of frameworks in their default configuration, over a local model, a program, and a server of each API:
 * a text, the same as a stream, and tools that are called and whose results are answered.
 */

/** What a client shows. Each asks for the scenarios of test/messages. */
interface Client {
  text(url: string, model: string): Promise<string | null>;
  stream(url: string, model: string): Promise<string | null>;
  /** Runs the tools that the model calls, and returns its last text. */
  tools(url: string, model: string): Promise<string | null>;
}

const [hello, calls] = ["Say it. #text", "Do it. #calls"];
const apiKey = "sk-none";

// Anthropic's provider warns about each request to a model whose token limit it does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

/** The inputs of the tools that ran. */
let ran: unknown[] = [];

function run(name: string, input: unknown): string {
  ran.push([name, input]);
  return "Seen.";
}

const inputs = { look: { type: "object", properties: { at: { type: "integer" } } }, wait: { type: "object" } } as const;
const names = ["look", "wait"] as const;

const openai = (url: string): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey });

const chat: Client = {
  async text(url, model) {
    const messages = [{ role: "user" as const, content: hello }];
    const { choices } = await openai(url).chat.completions.create({ model, messages });
    return choices[0]?.message.content ?? null;
  },
  stream(url, model) {
    const messages = [{ role: "user" as const, content: hello }];
    return openai(url).chat.completions.stream({ model, messages }).finalContent();
  },
  tools(url, model) {
    const tools = names.map((name): RunnableToolFunctionWithParse<object> => ({
      type: "function",
      function: {
        name,
        description: name,
        parameters: inputs[name],
        parse: (text: string) => JSON.parse(text) as object,
        function: (input: object) => run(name, input),
      },
    }));
    const question = [{ role: "user" as const, content: calls }];
    return openai(url).chat.completions.runTools({ model, messages: question, stream: true, tools }).finalContent();
  },
};

const responses: Client = {
  async text(url, model) {
    return (await openai(url).responses.create({ model, input: hello })).output_text;
  },
  async stream(url, model) {
    return (await openai(url).responses.stream({ model, input: hello }).finalResponse()).output_text;
  },
  async tools(url, model) {
    const tools = names.map((name) => ({
      type: "function" as const,
      name,
      parameters: inputs[name],
      strict: false,
    }));
    const first = await openai(url).responses.stream({ model, input: calls, tools }).finalResponse();
    const input = first.output.flatMap((item) =>
      item.type === "function_call"
        ? [
            {
              type: "function_call_output" as const,
              call_id: item.call_id,
              output: run(item.name, JSON.parse(item.arguments)),
            },
          ]
        : [],
    );
    const next = { model, previous_response_id: first.id, input, tools };
    return (await openai(url).responses.create(next)).output_text;
  },
};

const anthropic = (url: string): Anthropic => new Anthropic({ baseURL: url, apiKey });
const textOf = ({ content }: Anthropic.Message): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

const messages: Client = {
  async text(url, model) {
    const question = [{ role: "user" as const, content: hello }];
    return textOf(await anthropic(url).messages.create({ model, max_tokens: 100, messages: question }));
  },
  async stream(url, model) {
    const question = [{ role: "user" as const, content: hello }];
    return textOf(await anthropic(url).messages.stream({ model, max_tokens: 100, messages: question }).finalMessage());
  },
  async tools(url, model) {
    const tools = names.map((name) => ({ name, input_schema: inputs[name] }));
    const question = { role: "user" as const, content: calls };
    const client = anthropic(url);
    const first = await client.messages.stream({ model, max_tokens: 100, messages: [question], tools }).finalMessage();
    const results = first.content.flatMap((block) =>
      block.type === "tool_use"
        ? [{ type: "tool_result" as const, tool_use_id: block.id, content: run(block.name, block.input) }]
        : [],
    );
    const history = [
      question,
      { role: "assistant" as const, content: first.content },
      { role: "user" as const, content: results },
    ];
    return textOf(await client.messages.create({ model, max_tokens: 100, messages: history, tools }));
  },
};

const ollama: Client = {
  async text(host, model) {
    const question = [{ role: "user", content: hello }];
    return (await new Ollama({ host }).chat({ model, messages: question })).message.content;
  },
  async stream(host, model) {
    let text = "";
    const stream = await new Ollama({ host }).generate({ model, prompt: hello, stream: true });
    for await (const { response } of stream) text += response;
    return text;
  },
  async tools(host, model) {
    const client = new Ollama({ host });
    const tools = names.map((name) => ({
      type: "function",
      function: { name, description: name, parameters: inputs[name] },
    }));
    const messages: Message[] = [{ role: "user", content: calls }];
    for await (const { message } of await client.chat({ model, messages, tools, stream: true }))
      if (message.tool_calls) messages.push(message);
    const results = messages.flatMap(({ tool_calls: called = [] }) =>
      called.map(({ function: { name, arguments: input } }) => ({
        role: "tool",
        tool_name: name,
        content: run(name, input),
      })),
    );
    return (await client.chat({ model, messages: [...messages, ...results], tools })).message.content;
  },
};

function aiSdk(modelOf: (url: string, model: string) => LanguageModel): Client {
  const tools = {
    look: tool({ inputSchema: z.object({ at: z.int() }), execute: (input) => run("look", input) }),
    wait: tool({ inputSchema: z.object({}), execute: (input) => run("wait", input) }),
  };
  return {
    text: async (url, model) => (await generateText({ model: modelOf(url, model), prompt: hello })).text,
    stream: async (url, model) => await streamText({ model: modelOf(url, model), prompt: hello }).text,
    tools: async (url, model) =>
      await streamText({ model: modelOf(url, model), prompt: calls, tools, stopWhen: isStepCount(3) }).text,
  };
}

function agents(useResponses: boolean): Client {
  const runner = (url: string, model: string): Runner =>
    new Runner({
      modelProvider: new OpenAIProvider({ baseURL: `${url}/v1`, apiKey, useResponses }),
      model,
      tracingDisabled: true,
    });
  const agent = new Agent({
    name: "Host",
    tools: [
      agentTool({
        name: "look",
        description: "Looks",
        parameters: z.object({ at: z.int() }),
        execute: (input) => run("look", input),
      }),
      agentTool({
        name: "wait",
        description: "Waits",
        parameters: z.object({}),
        execute: (input) => run("wait", input),
      }),
    ],
  });
  const streamed = async (url: string, model: string, question: string): Promise<string | null> => {
    const result = await runner(url, model).run(agent, question, { stream: true });
    await result.completed;
    return result.finalOutput ?? null;
  };
  return {
    text: async (url, model) => (await runner(url, model).run(agent, hello)).finalOutput ?? null,
    stream: (url, model) => streamed(url, model, hello),
    tools: (url, model) => streamed(url, model, calls),
  };
}

const clients: Readonly<Record<string, Client>> = {
  "openai 7, chat": chat,
  "openai 7, Responses": responses,
  "Anthropic's SDK 1": messages,
  "ollama 0.6": ollama,
  "AI SDK 7, OpenAI's provider": aiSdk((url, model) => createOpenAI({ baseURL: `${url}/v1`, apiKey })(model)),
  "AI SDK 7, OpenAI's provider by chat": aiSdk((url, model) =>
    createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat(model),
  ),
  "AI SDK 7, Anthropic's provider": aiSdk((url, model) => createAnthropic({ baseURL: `${url}/v1`, apiKey })(model)),
  "AI SDK 7, provider for compatible servers": aiSdk((url, model) =>
    createOpenAICompatible({ name: "truewire", baseURL: `${url}/v1` })(model),
  ),
  "Agents SDK 0.20": agents(true),
  "Agents SDK 0.20 by chat": agents(false),
};

describe.each(dailyPart(["lean", "exact"] as const, 2))("wire %s", (wire) => {
  let server: TruewireServer;
  beforeAll(async () => {
    server = await serveScenarios(wire);
  });
  afterAll(() => server.close());

  // A server of legacy completions has no conversations.
  describe.each(scenarioSources.filter((source) => source !== "completions upstream"))("over a %s", (source) => {
    test.each(Object.entries(clients))("%s: text, stream, tools", async (_, client) => {
      expect(await client.text(server.url, source)).toBe("Hello there.");
      expect(await client.stream(server.url, source)).toBe("Hello there.");
      ran = [];
      expect(await client.tools(server.url, source)).toBe("Hello there.");
      expect(ran).toEqual([
        ["look", { at: 1 }],
        ["wait", {}],
      ]);
    });
  });
});
