import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";
import type { LanguageModel, ModelMessage } from "ai";
import * as ai7 from "ai-7";
import { createAnthropic as createAnthropic7 } from "ai-7-anthropic";
import { createOpenAICompatible as createOpenAICompatible7 } from "ai-7-compatible";
import { createOpenAI as createOpenAI7 } from "ai-7-openai";
import type { Json } from "../../doubles/chat-server.ts";
import { runTool, tools } from "../../doubles/task.ts";
import type { TaskCall } from "../../doubles/task.ts";
import { maxSteps } from "./client.ts";
import type { SessionClient } from "./client.ts";

/*
 * Vercel's AI SDK 6 and 7 by each API: streamed sessions in their default configuration, with the settings that a thinking agent has. A
 * session's history consists of the messages that the SDK returns.
 */

// Anthropic's provider warns about each request to a model whose token limit it does not know.
globalThis.AI_SDK_LOG_WARNINGS = false;

const options = {
  anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } },
  openai: { store: false, include: ["reasoning.encrypted_content"], forceReasoning: true },
} as const;

function toolsOf(ran: TaskCall[]) {
  return Object.fromEntries(
    tools.map(({ name, description, schema }) => [
      name,
      {
        description,
        schema,
        execute(input: unknown) {
          const call = { name, input: input as Json };
          ran.push(call);
          const { text, isError } = runTool(call);
          if (isError) throw new Error(text);
          return text;
        },
      },
    ]),
  );
}

function withSdk6(name: string, modelOf: (url: string, model: string) => LanguageModel): SessionClient {
  return {
    name: `AI SDK 6, ${name}`,
    open(url) {
      const messages: ModelMessage[] = [];
      return {
        async turn(model, content) {
          messages.push({ role: "user", content });
          const ran: TaskCall[] = [];
          let failed: unknown;
          const stream = streamText({
            model: modelOf(url, model),
            system: "You explore a house.",
            messages,
            stopWhen: stepCountIs(maxSteps),
            maxRetries: 0,
            providerOptions: options as never,
            tools: Object.fromEntries(
              Object.entries(toolsOf(ran)).map(([key, { description, schema, execute }]) => [
                key,
                tool({ description, inputSchema: jsonSchema(schema as never), execute }),
              ]),
            ),
            onError: ({ error }) => void (failed ??= error),
          });
          await stream.consumeStream();
          if (failed) throw failed;
          const { messages: said } = await stream.response;
          messages.push(...said);
          return { text: await stream.text, calls: ran };
        },
      };
    },
  };
}

function withSdk7(name: string, modelOf: (url: string, model: string) => ai7.LanguageModel): SessionClient {
  return {
    name: `AI SDK 7, ${name}`,
    open(url) {
      const messages: ai7.ModelMessage[] = [];
      return {
        async turn(model, content) {
          messages.push({ role: "user", content });
          const ran: TaskCall[] = [];
          let failed: unknown;
          const stream = ai7.streamText({
            model: modelOf(url, model),
            instructions: "You explore a house.",
            messages,
            stopWhen: ai7.isStepCount(maxSteps),
            maxRetries: 0,
            providerOptions: options as never,
            tools: Object.fromEntries(
              Object.entries(toolsOf(ran)).map(([key, { description, schema, execute }]) => [
                key,
                ai7.tool({ description, inputSchema: ai7.jsonSchema(schema as never), execute }),
              ]),
            ),
            onError: ({ error }) => void (failed ??= error),
          });
          await stream.consumeStream();
          if (failed) throw failed;
          messages.push(...(await stream.responseMessages));
          return { text: await stream.text, calls: ran };
        },
      };
    },
  };
}

const apiKey = "none";

export const aiSdkClients: readonly SessionClient[] = [
  withSdk6("chat", (url, model) =>
    createOpenAICompatible({ name: "truewire", baseURL: `${url}/v1`, includeUsage: true })(model),
  ),
  withSdk6("OpenAI chat", (url, model) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat(model)),
  withSdk6("Responses", (url, model) => createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses(model)),
  withSdk6("Messages", (url, model) => createAnthropic({ baseURL: `${url}/v1`, apiKey })(model)),
  withSdk7("chat", (url, model) =>
    createOpenAICompatible7({ name: "truewire", baseURL: `${url}/v1`, includeUsage: true })(model),
  ),
  withSdk7("Responses", (url, model) => createOpenAI7({ baseURL: `${url}/v1`, apiKey }).responses(model)),
  withSdk7("Messages", (url, model) => createAnthropic7({ baseURL: `${url}/v1`, apiKey })(model)),
];
