/*
 * Mastra: an agent whose conversations are in Mastra's own memory. The argument is the API: chat (Mastra's model of an address), or responses
 * and messages (the providers of AI SDK).
 */
import { createRequire } from "node:module";
import { runTool, tools } from "../../../test/doubles/task.ts";
import * as the from "./scenarios.mjs";

// NODE_PATH names the folder of the packages.
const require = createRequire(import.meta.url);
const { createAnthropic } = require("@ai-sdk/anthropic");
const { createOpenAI } = require("@ai-sdk/openai");
const { Agent } = require("@mastra/core/agent");
const { InMemoryStore } = require("@mastra/core/storage");
const { createTool } = require("@mastra/core/tools");
const { Memory } = require("@mastra/memory");
const { z } = require("zod");

const [api = "chat"] = process.argv.slice(2);
const { apiKey } = the;
const baseURL = `${the.url}/v1`;
const models = {
  chat: (modelId) => ({ providerId: "truewire", modelId, url: baseURL, apiKey }),
  responses: (modelId) => createOpenAI({ baseURL, apiKey }).responses(modelId),
  messages: (modelId) => createAnthropic({ baseURL, apiKey })(modelId),
};
const providerOptions = {
  anthropic: { thinking: { type: "enabled", budgetTokens: 2000 } },
  openai: { store: false, include: ["reasoning.encrypted_content"], reasoningSummary: "auto", forceReasoning: true },
};

function agentOf(modelId, more = {}) {
  const name = "agent";
  return new Agent({ id: name, name, instructions: "You are an agent.", model: models[api](modelId), ...more });
}

/** Streams an answer to its end, and returns it. */
async function answer(agent, text, options = {}) {
  const output = await agent.stream(text, { maxSteps: 8, providerOptions, ...options });
  let chunks = 0;
  let failed;
  for await (const { type, payload } of output.fullStream) {
    chunks++;
    if (type === "error") failed ??= payload.error;
  }
  if (failed) throw failed;
  return { text: await output.text, reasoning: await output.reasoningText, output, chunks };
}

async function stream() {
  const { text, output, chunks } = await answer(agentOf(the.model), "Hello");
  the.equal(text, the.greeting);
  return `${chunks} chunks, usage ${JSON.stringify(await output.usage)}`;
}

async function toolLoop() {
  let calls = 0;
  const getWeather = createTool({
    id: "get_weather",
    description: "The weather of a city.",
    inputSchema: z.object({ city: z.string() }),
    async execute({ city }) {
      calls++;
      the.equal(typeof city, "string", "city");
      return the.weather;
    },
  });
  const { text } = await answer(agentOf(the.model, { tools: { get_weather: getWeather } }), "Weather in Paris?");
  the.equal(text.replaceAll('"', ""), the.result);
  return `${calls} call, then a text`;
}

async function structured() {
  const schema = z.object({ name: z.string(), age: z.number().int(), tags: z.array(z.string()) });
  const { output } = await answer(agentOf(the.model), "A person", { structuredOutput: { schema } });
  return JSON.stringify(schema.parse(await output.object));
}

async function error() {
  const refused = await answer(agentOf(the.noSuchModel), "Hello").then(
    () => undefined,
    (error) => error,
  );
  // OpenAI refuses an unknown model of a response with 400.
  const status = api === "responses" ? 400 : 404;
  the.equal(refused?.statusCode, status, `error ${String(refused)}`);
  const { text } = await answer(agentOf(the.model, { maxRetries: 2 }), the.failsOnce());
  the.equal(text, the.greeting);
  return `APICallError ${status}; 503 was tried again`;
}

async function cancel() {
  const controller = new AbortController();
  const output = await agentOf(the.model).stream(the.slowly, { abortSignal: controller.signal, providerOptions });
  for await (const { type, payload } of output.fullStream) {
    if (type !== "text-delta") continue;
    the.equal(payload.text, "Hello ", "first text");
    controller.abort();
    return "aborted after the first text";
  }
  throw new Error("no text came");
}

async function reasoning() {
  const { reasoning } = await answer(agentOf(the.model), "Hello");
  the.equal(reasoning, "Let me think.", "reasoningText");
  return "in reasoningText";
}

/** Sessions: the tools of the task, and the history in Mastra's memory. */
const client = {
  name: `Mastra, ${api}`,
  open() {
    const memory = new Memory({ storage: new InMemoryStore(), options: { lastMessages: 100 } });
    return {
      async turn(modelId, text) {
        const ran = [];
        const made = tools.map(({ name, description, schema }) => {
          const execute = async (input) => {
            ran.push({ name, input });
            const { text, isError } = runTool({ name, input });
            if (isError) throw new Error(text);
            return text;
          };
          return [name, createTool({ id: name, description, inputSchema: z.fromJSONSchema(schema), execute })];
        });
        const agent = agentOf(modelId, { memory, tools: Object.fromEntries(made) });
        const { text: said } = await answer(agent, text, { memory: { thread: "house", resource: "user" } });
        return { text: said, calls: ran };
      },
    };
  },
};

await the.run({ stream, tools: toolLoop, structured, error, cancel, reasoning }, client);
// Mastra leaves timers.
process.exit();
