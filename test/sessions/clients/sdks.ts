import Anthropic from "@anthropic-ai/sdk";
import { Agent, OpenAIProvider, Runner, tool as agentTool } from "@openai/agents";
import type { AgentInputItem } from "@openai/agents";
import OpenAI from "openai-7";
import type { RunnableToolFunctionWithParse } from "openai-7/lib/RunnableFunction";
import { tools } from "../../doubles/task.ts";
import type { TaskCall } from "../../doubles/task.ts";
import { maxSteps, run } from "./client.ts";
import type { SessionClient } from "./client.ts";

/* OpenAI's and Anthropic's SDKs with the loops of their documentation, and OpenAI's Agents SDK. */

const apiKey = "none";

const openAiChat: SessionClient = {
  name: "OpenAI SDK, chat",
  open(url) {
    const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
    let messages: OpenAI.ChatCompletionMessageParam[] = [];
    return {
      async turn(model, content) {
        const ran: TaskCall[] = [];
        const runner = client.chat.completions.runTools(
          {
            model,
            messages: [...messages, { role: "user", content }],
            stream: true,
            tools: tools.map(({ name, description, schema }): RunnableToolFunctionWithParse<object> => ({
              type: "function",
              function: {
                name,
                description,
                parameters: schema as Record<string, unknown>,
                parse: (text: string) => JSON.parse(text) as object,
                function(input: object) {
                  const result = run(name, input);
                  ran.push(result.call);
                  return result.text;
                },
              },
            })),
          },
          { maxChatCompletions: maxSteps },
        );
        const text = (await runner.finalContent()) ?? "";
        messages = runner.messages;
        return { text, calls: ran };
      },
    };
  },
};

function openAiResponses(store: boolean): SessionClient {
  return {
    name: `OpenAI SDK, Responses${store ? "" : ", store: false"}`,
    open(url) {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
      const input: OpenAI.Responses.ResponseInputItem[] = [];
      return {
        async turn(model, content) {
          input.push({ role: "user", content });
          const ran: TaskCall[] = [];
          for (let step = 0; step < maxSteps; step++) {
            const response = await client.responses
              .stream({
                model,
                input,
                tools: tools.map(({ name, schema }) => ({ type: "function", name, parameters: schema, strict: false })),
                ...(!store && { store, include: ["reasoning.encrypted_content"] }),
              })
              .finalResponse();
            // The SDK's streams add `parsed_arguments`, which OpenAI itself refuses.
            const items = response.output.map((item) => ({ ...item, parsed_arguments: undefined }));
            input.push(...(items as OpenAI.Responses.ResponseInputItem[]));
            const before = ran.length;
            for (const item of response.output) {
              if (item.type !== "function_call") continue;
              const result = run(item.name, item.arguments);
              ran.push(result.call);
              input.push({ type: "function_call_output", call_id: item.call_id, output: result.text });
            }
            if (ran.length === before) return { text: response.output_text, calls: ran };
          }
          throw new Error("the turn does not end");
        },
      };
    },
  };
}

const anthropic: SessionClient = {
  name: "Anthropic SDK",
  open(url) {
    const client = new Anthropic({ baseURL: url, apiKey, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [];
    return {
      async turn(model, content) {
        messages.push({ role: "user", content });
        const ran: TaskCall[] = [];
        for (let step = 0; step < maxSteps; step++) {
          const message = await client.messages
            .stream({
              model,
              max_tokens: 4000,
              thinking: { type: "enabled", budget_tokens: 2000 },
              messages,
              tools: tools.map(({ name, schema }) => ({ name, input_schema: schema as Anthropic.Tool.InputSchema })),
            })
            .finalMessage();
          messages.push({ role: "assistant", content: message.content });
          const results: Anthropic.ToolResultBlockParam[] = [];
          for (const block of message.content) {
            if (block.type !== "tool_use") continue;
            const { call, text, isError } = run(block.name, block.input);
            ran.push(call);
            results.push({ type: "tool_result", tool_use_id: block.id, content: text, is_error: isError });
          }
          const texts = message.content.map((block) => (block.type === "text" ? block.text : ""));
          if (results.length === 0) return { text: texts.join(""), calls: ran };
          messages.push({ role: "user", content: results });
        }
        throw new Error("the turn does not end");
      },
    };
  },
};

function agents(useResponses: boolean): SessionClient {
  return {
    name: `Agents SDK, ${useResponses ? "Responses" : "chat"}`,
    open(url) {
      const modelProvider = new OpenAIProvider({ baseURL: `${url}/v1`, apiKey, useResponses });
      let history: AgentInputItem[] = [];
      return {
        async turn(model, content) {
          const ran: TaskCall[] = [];
          const agent = new Agent({
            name: "Explorer",
            instructions: "You explore a house.",
            tools: tools.map(({ name, description, schema }) =>
              agentTool({
                name,
                description,
                parameters: schema as never,
                strict: false,
                execute(input: unknown) {
                  const result = run(name, input);
                  ran.push(result.call);
                  return result.text;
                },
              }),
            ),
          });
          const runner = new Runner({ modelProvider, model, tracingDisabled: true });
          const input = [...history, { role: "user" as const, content }];
          const result = await runner.run(agent, input, { stream: true, maxTurns: maxSteps });
          await result.completed;
          history = result.history;
          return { text: String(result.finalOutput), calls: ran };
        },
      };
    },
  };
}

export const sdkClients: readonly SessionClient[] = [
  openAiChat,
  openAiResponses(true),
  openAiResponses(false),
  anthropic,
  agents(true),
  agents(false),
];
