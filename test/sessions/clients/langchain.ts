import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { AIMessageChunk, BaseMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { tools } from "../../doubles/task.ts";
import type { TaskCall } from "../../doubles/task.ts";
import { maxSteps, run } from "./client.ts";
import type { SessionClient } from "./client.ts";

/* LangChain.js by each API, streamed: chunks are put together as its documentation does. */

type Model = Pick<ChatOpenAI | ChatAnthropic, "stream">;

function langChain(name: string, modelOf: (url: string, model: string) => { stream: Model["stream"] }): SessionClient {
  return {
    name: `LangChain, ${name}`,
    open(url) {
      const messages: BaseMessage[] = [];
      return {
        async turn(model, text) {
          messages.push(new HumanMessage(text));
          const ran: TaskCall[] = [];
          for (let step = 0; step < maxSteps; step++) {
            let message: AIMessageChunk | undefined;
            for await (const chunk of await modelOf(url, model).stream(messages))
              message = message ? message.concat(chunk) : chunk;
            if (!message) throw new Error("no chunk came");
            messages.push(message);
            const calls = message.tool_calls ?? [];
            if (calls.length === 0) return { text: message.text, calls: ran };
            for (const { id = "", name: called, args } of calls) {
              const result = run(called, args);
              ran.push(result.call);
              const status = result.isError ? "error" : "success";
              messages.push(new ToolMessage({ content: result.text, tool_call_id: id, status }));
            }
          }
          throw new Error("the turn does not end");
        },
      };
    },
  };
}

const langTools = tools.map(({ name, description, schema }) => ({ name, description, schema }));

function openAi(url: string, model: string, useResponsesApi: boolean) {
  const configuration = { baseURL: `${url}/v1` };
  return new ChatOpenAI({ model, apiKey: "none", maxRetries: 0, configuration, useResponsesApi }).bindTools(
    langTools as never,
  );
}

export const langChainClients: readonly SessionClient[] = [
  langChain("chat", (url, model) => openAi(url, model, false)),
  langChain("Responses", (url, model) => openAi(url, model, true)),
  langChain("Messages", (url, model) =>
    new ChatAnthropic({
      model,
      apiKey: "none",
      anthropicApiUrl: url,
      maxRetries: 0,
      maxTokens: 4000,
      thinking: { type: "enabled", budget_tokens: 2000 },
    }).bindTools(langTools as never),
  ),
];
